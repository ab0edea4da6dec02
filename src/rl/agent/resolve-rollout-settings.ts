import { invalidArgument } from "../../core/errors.js";
import { resolveOptions } from "../../generation/generation-options.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { trainedDistribution, type RolloutSettings } from "../rollout/rollout-settings.js";
import { DEFAULT_CALL_TIMEOUT_SECONDS } from "../rollout/with-timeout.js";
import { DEFAULT_HISTORY_TURNS } from "./agent-settings.js";
import { checkAgentOptions } from "./check-agent-options.js";
import type { AgentOptions } from "./agent-options.js";

/**
 * Defaults of an agent's completions. LlamaGym uses 32 tokens at temperature 0.9 with top-p 0.6; here
 * the trained policy is the sampled one, so sampling is not truncated by default.
 */
const GENERATION_DEFAULTS = { maxNewTokens: 32, temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

/** Resolves an agent's rollout settings. @throws INVALID_ARGUMENT for invalid options. */
export function resolveRolloutSettings<Observation, Action>(
  model: LanguageModel,
  options: AgentOptions<Observation, Action>,
): RolloutSettings<Observation, Action> {
  checkAgentOptions(options);
  const { sampling, maxNewTokens, stop } = resolveOptions({ ...GENERATION_DEFAULTS, ...options.generation });
  const { maxPositions } = model.causalLM.config;
  // Without a chat template, only the end of the line ends a completion.
  const maxContextLength = Math.min(options.maxContextLength ?? maxPositions, maxPositions);
  if (options.generation?.maxNewTokens !== undefined && maxNewTokens >= maxContextLength)
    throw invalidArgument(
      `maxNewTokens is ${maxNewTokens}, which leaves no room for a prompt in a context of ${maxContextLength} tokens. Lower it.`,
    );
  const stopStrings = model.tokenizer.chatTemplates.size > 0 || stop.length > 0 ? stop : ["\n"];
  return {
    completion: {
      sampling,
      trainedDistribution: options.trainedDistribution ?? trainedDistribution.default,
      maxNewTokens,
      stop: stopStrings,
      ignoreEos: options.generation?.ignoreEos === true,
      scoring: options.actionScoring,
    },
    prompt: {
      historyTurns: options.historyTurns ?? DEFAULT_HISTORY_TURNS,
      contextOverflow: options.contextOverflow ?? "drop-oldest",
      maxContextLength,
      completionPrefix: options.completionPrefix ?? "",
    },
    invalidAction: { ...INVALID_ACTION_DEFAULTS, ...options.invalidAction },
    spreadSparseRewards: options.spreadSparseRewards ?? false,
    callTimeoutSeconds: options.callTimeoutSeconds ?? DEFAULT_CALL_TIMEOUT_SECONDS,
  };
}

const INVALID_ACTION_DEFAULTS = { retries: 0, fallback: "error", penalty: 0 } as const;
