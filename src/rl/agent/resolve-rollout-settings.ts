import { invalidArgument } from "../../core/errors.js";
import { resolveOptions } from "../../generation/generation-options.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { RolloutSettings } from "../rollout/rollout-settings.js";
import { checkAgentOptions } from "./check-agent-options.js";
import type { AgentOptions } from "./agent-options.js";

/**
 * Defaults of an agent's replies. LlamaGym's are 32 tokens at temperature 0.9 with top-p 0.6; here the policy that is trained is
 * the one that is sampled, so nothing is cut off unless it is asked for.
 */
const GENERATION_DEFAULTS = { maxNewTokens: 32, temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

/** An agent's settings for its replies, all decided. Throws INVALID_ARGUMENT for values out of range. */
export function resolveRolloutSettings<Observation, Action>(
  model: LanguageModel,
  options: AgentOptions<Observation, Action>,
): RolloutSettings<Observation, Action> {
  checkAgentOptions(options);
  const { sampling, maxNewTokens, stop } = resolveOptions({ ...GENERATION_DEFAULTS, ...options.generation });
  const { maxPositions } = model.causalLM.config;
  // Without a chat template nothing but the line's end says that a reply is over.
  const maxContextLength = Math.min(options.maxContextLength ?? maxPositions, maxPositions);
  if (options.generation?.maxNewTokens !== undefined && maxNewTokens >= maxContextLength) {
    throw invalidArgument(
      `maxNewTokens is ${maxNewTokens}, which leaves no room for a prompt in a context of ${maxContextLength} tokens. Ask for shorter replies.`,
    );
  }
  const stopStrings = model.tokenizer.chatTemplates.size > 0 || stop.length > 0 ? stop : ["\n"];
  return {
    completion: {
      sampling,
      maxNewTokens,
      stop: stopStrings,
      ignoreEos: options.generation?.ignoreEos === true,
      scoring: options.actionScoring,
    },
    prompt: {
      historyTurns: options.historyTurns ?? Infinity,
      contextOverflow: options.contextOverflow ?? "drop-oldest",
      maxContextLength,
      completionPrefix: options.completionPrefix ?? "",
    },
    invalidAction: { ...INVALID_ACTION_DEFAULTS, ...options.invalidAction },
    spreadSparseRewards: options.spreadSparseRewards ?? false,
  };
}

const INVALID_ACTION_DEFAULTS = { retries: 0, fallback: "error", penalty: 0 } as const;
