import type { Info } from "../../envs/info.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { SamplingParams } from "../../engine/runtime/kernels/sampling.js";
import type { RandomStream } from "../../core/random/random-stream.js";

/** What happens when a prompt leaves no room for the reply. */
export type ContextOverflow = "drop-oldest" | "error";

interface FallbackMethod<Observation, Action> {
  // As a method, so that an agent for one kind of observation is also an agent for unknown ones.
  fallback(observation: Observation, random: RandomStream, info: Info): MaybePromise<Action>;
}

/** What happens when no action can be read out of a reply. */
export interface InvalidActionPolicy<Observation = unknown, Action = unknown> {
  /** Replies drawn again to the same prompt before giving up; those refused are neither shown nor trained. */
  readonly retries: number;
  /** The action then: "error" ends the run with AGENT_NO_ACTION, a function chooses one. */
  readonly fallback: "error" | FallbackMethod<Observation, Action>["fallback"];
  /** Taken from the reward of a turn whose reply meant nothing. */
  readonly penalty: number;
}

/** What the score of an action's text is divided by: nothing, its tokens, its words. */
export const ACTION_SCORINGS = ["sum", "token", "word"] as const;
export type ActionScoring = (typeof ACTION_SCORINGS)[number];

/** How an agent replies. */
export interface CompletionSettings {
  readonly sampling: SamplingParams;
  readonly maxNewTokens: number;
  /** Strings that end a reply. */
  readonly stop: readonly string[];
  /**
   * Where the possible replies are known, draws one by its score: the softmax of the sums of their log-probabilities, as they are
   * (GLAM), over their tokens or over their words (TWOSOME). Undefined draws a reply token by token.
   */
  readonly scoring: ActionScoring | undefined;
  /** The model's own end tokens do not end a reply. */
  readonly ignoreEos: boolean;
}

/** How an episode is told to the model. */
export interface PromptSettings {
  /** Earlier turns that a prompt shows; 0 for the observation alone, Infinity for all that fit. */
  readonly historyTurns: number;
  readonly contextOverflow: ContextOverflow;
  /** Tokens of a prompt and its reply together. */
  readonly maxContextLength: number;
  /** How every reply begins, given to the model. */
  readonly completionPrefix: string;
}

export interface RolloutSettings<Observation = unknown, Action = unknown> {
  readonly completion: CompletionSettings;
  readonly prompt: PromptSettings;
  readonly invalidAction: InvalidActionPolicy<Observation, Action>;
  /** Whether a reward that comes only at the end of an episode is shared between its turns. */
  readonly spreadSparseRewards: boolean;
}
