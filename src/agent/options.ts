import type { PpoOptions } from "../algorithms/ppo/config.js";
import { resolveOptions, type GenerationOptions } from "../generation/options.js";
import type { LanguageModel } from "../generation/language-model.js";
import type { ContextPolicy, InvalidReplyPolicy, PlaySettings } from "../rollout/settings.js";

/** How an agent replies; the names are `model.generate`'s. */
export type AgentGeneration = Pick<
  GenerationOptions,
  "maxNewTokens" | "temperature" | "topK" | "topP" | "minP" | "repetitionPenalty" | "stop"
>;

/**
 * Defaults of an agent's replies. LlamaGym's are 32 tokens at temperature 0.9 with top-p 0.6; here the policy that is trained is
 * the one that is sampled, so nothing is cut off unless it is asked for.
 */
const GENERATION_DEFAULTS = { maxNewTokens: 32, temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

export interface AgentOptions<Observation = unknown, Action = unknown> {
  readonly generation?: AgentGeneration;
  /** Temperature after `eval()`. Default 0: the most probable reply. */
  readonly evalTemperature?: number;
  /** Earlier turns that a prompt shows. Default Infinity: the whole episode as far as the context allows. */
  readonly historyTurns?: number;
  /** When the context is full: leave out the oldest turns (the default), or throw CONTEXT_OVERFLOW. */
  readonly contextPolicy?: ContextPolicy;
  /** Tokens of a prompt and its reply together; the model's context by default. */
  readonly maxContext?: number;
  /** How every reply begins, such as "Action:"; given to the model, not sampled. */
  readonly replyPrefix?: string;
  /** What happens when no action can be read out of a reply. By default that is an error, at once. */
  readonly invalidReply?: Partial<InvalidReplyPolicy<Observation, Action>>;
  /** Shares the return of an episode equally between its turns where all rewards but the last are zero. Default false. */
  readonly shareSparseRewards?: boolean;
  readonly ppo?: PpoOptions;
  /** Tokens of one forward and backward pass; more need more memory. By default what takes some 2 GB. */
  readonly maxTokens?: number;
  /** Decides replies, minibatches and dropout; the same seed gives the same run. Default 0. */
  readonly seed?: number;
}

/** An agent's settings for its replies, all decided. Throws INVALID_ARGUMENT for values out of range. */
export function playSettings<Observation, Action>(
  model: LanguageModel,
  options: AgentOptions<Observation, Action>,
): PlaySettings<Observation, Action> {
  const { settings: sampling, maxNewTokens, stop } = resolveOptions({ ...GENERATION_DEFAULTS, ...options.generation });
  const { maxPositions } = model.causalLM.config;
  // Without a chat template nothing but the line's end says that a reply is over.
  const ends = model.tokenizer.chatTemplates.size > 0 || stop.length > 0 ? stop : ["\n"];
  return {
    reply: { sampling, maxNewTokens, stop: ends },
    dialogue: {
      historyTurns: options.historyTurns ?? Infinity,
      contextPolicy: options.contextPolicy ?? "drop-oldest",
      maxContext: Math.min(options.maxContext ?? maxPositions, maxPositions),
      replyPrefix: options.replyPrefix ?? "",
    },
    invalidReply: { retries: 0, fallback: "error", penalty: 0, ...options.invalidReply },
  };
}
