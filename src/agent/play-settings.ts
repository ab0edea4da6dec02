import { invalid } from "../algorithms/shared/settings.js";
import { resolveOptions } from "../generation/options.js";
import type { LanguageModel } from "../generation/language-model.js";
import type { PlaySettings } from "../rollout/settings.js";
import { checkAgentOptions } from "./check-options.js";
import type { AgentOptions } from "./options.js";

/**
 * Defaults of an agent's replies. LlamaGym's are 32 tokens at temperature 0.9 with top-p 0.6; here the policy that is trained is
 * the one that is sampled, so nothing is cut off unless it is asked for.
 */
const GENERATION_DEFAULTS = { maxNewTokens: 32, temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

/** An agent's settings for its replies, all decided. Throws INVALID_ARGUMENT for values out of range. */
export function playSettings<Observation, Action>(
  model: LanguageModel,
  options: AgentOptions<Observation, Action>,
): PlaySettings<Observation, Action> {
  checkAgentOptions(options);
  const { settings: sampling, maxNewTokens, stop } = resolveOptions({ ...GENERATION_DEFAULTS, ...options.generation });
  const { maxPositions } = model.causalLM.config;
  // Without a chat template nothing but the line's end says that a reply is over.
  const maxContext = Math.min(options.maxContext ?? maxPositions, maxPositions);
  if (options.generation?.maxNewTokens !== undefined && maxNewTokens >= maxContext) {
    throw invalid(
      `maxNewTokens is ${maxNewTokens}, which leaves no room for a prompt in a context of ${maxContext} tokens. Ask for shorter replies.`,
    );
  }
  const ends = model.tokenizer.chatTemplates.size > 0 || stop.length > 0 ? stop : ["\n"];
  return {
    reply: {
      sampling,
      maxNewTokens,
      stop: ends,
      ignoreEos: options.generation?.ignoreEos === true,
      scoring: options.actionScoring,
    },
    dialogue: {
      historyTurns: options.historyTurns ?? Infinity,
      contextPolicy: options.contextPolicy ?? "drop-oldest",
      maxContext,
      replyPrefix: options.replyPrefix ?? "",
    },
    invalidReply: { ...INVALID_REPLY_DEFAULTS, ...options.invalidReply },
    sharesSparseRewards: options.shareSparseRewards ?? false,
  };
}

const INVALID_REPLY_DEFAULTS = { retries: 0, fallback: "error", penalty: 0 } as const;
