import { choice } from "../../core/settings.js";
import type { Info } from "../../envs/info.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { ContextOverflow } from "../../generation/generation-options.js";
import type { SamplingParams } from "../../engine/runtime/kernels/sampling.js";
import type { RandomStream } from "../../core/random/random-stream.js";

interface FallbackMethod<Observation, Action> {
  // As a method, so that an agent for one kind of observation is also an agent for unknown ones.
  fallback(observation: Observation, random: RandomStream, info: Info): MaybePromise<Action>;
}

/** How completions without an action are handled. */
export interface InvalidActionPolicy<Observation = unknown, Action = unknown> {
  /** Number of times a completion is resampled; rejected ones enter neither prompts nor training. */
  readonly retries: number;
  /** "error" throws AGENT_NO_ACTION; a function chooses the action. */
  readonly fallback: "error" | FallbackMethod<Observation, Action>["fallback"];
  /** Subtracted from the reward of a turn without a valid action. */
  readonly penalty: number;
}

/** Normalization of an action's score: none, by the number of tokens, or by the number of words. */
export const ACTION_SCORINGS = ["sum", "token", "word"] as const;
export type ActionScoring = (typeof ACTION_SCORINGS)[number];

/** Distribution that is trained where top-k, top-p or min-p truncate the one that tokens are sampled from. */
const TRAINED_DISTRIBUTIONS = ["sampled", "full"] as const;
export type TrainedDistribution = (typeof TRAINED_DISTRIBUTIONS)[number];

export const trainedDistribution = choice({
  default: "sampled",
  choices: TRAINED_DISTRIBUTIONS,
  description:
    "Distribution that is trained where topK, topP or minP truncate sampling: the one sampled from, or the model's full one, which is biased.",
});

/** Whether completions come with the tokens that filters kept. A repetition penalty changes probabilities, too. */
export function recordsKeptTokens({ sampling, trainedDistribution: trained }: SampledDistribution): boolean {
  const { temperature, topK, topP, minP, repetitionPenalty } = sampling;
  const isTruncated = temperature > 0 && (topK > 0 || topP < 1 || minP > 0);
  return isTruncated && repetitionPenalty === 1 && trained === "sampled";
}

/** Whether log-probabilities of sampled tokens are not those of the trained distribution, and are computed again. */
export function isTruncatedSampling(settings: SampledDistribution): boolean {
  const { topK, topP, minP, repetitionPenalty } = settings.sampling;
  return (topK > 0 || topP < 1 || minP > 0 || repetitionPenalty !== 1) && !recordsKeptTokens(settings);
}

type SampledDistribution = Pick<CompletionSettings, "sampling" | "trainedDistribution">;

/** How completions are sampled. */
export interface CompletionSettings {
  readonly sampling: SamplingParams;
  readonly trainedDistribution: TrainedDistribution;
  readonly maxNewTokens: number;
  /** Strings that end a completion. */
  readonly stop: readonly string[];
  /**
   * Samples one of known choices by its score: a softmax over the sums of their log-probabilities, unnormalized (GLAM) or divided by
   * the number of tokens or words (TWOSOME). Undefined samples token by token.
   */
  readonly scoring: ActionScoring | undefined;
  /** Whether the model's end tokens do not end a completion. */
  readonly ignoreEos: boolean;
}

/** How prompts are built. */
export interface PromptSettings {
  /** Maximum number of earlier turns in a prompt; Infinity for all that fit. */
  readonly historyTurns: number;
  readonly contextOverflow: ContextOverflow;
  /** Maximum number of tokens of a prompt and its completion. */
  readonly maxContextLength: number;
  /** Text that every completion starts with, as part of the prompt. */
  readonly completionPrefix: string;
}

export interface RolloutSettings<Observation = unknown, Action = unknown> {
  readonly completion: CompletionSettings;
  readonly prompt: PromptSettings;
  readonly invalidAction: InvalidActionPolicy<Observation, Action>;
  /** Whether a reward at the end of an episode is spread evenly over its turns. */
  readonly spreadSparseRewards: boolean;
  /** Limit of a call of the agent's or environment's code that returns a promise; 0 waits forever. */
  readonly callTimeoutSeconds: number;
}
