import type { FinishReason } from "../../generation/sampling/sample-request.js";
import type { Extraction } from "./extraction.js";

/** The actions among which one was drawn by their scores, the softmax of weight * (sum of a text's log-probabilities). */
export interface ActionCandidates {
  /** Token ids of each action's text. */
  readonly sequences: readonly (readonly number[])[];
  /** What each sum is multiplied with: 1 over the normalising length and the temperature. */
  readonly weights: readonly number[];
  readonly chosen: number;
}

/** One reply of the policy as it was sampled, and what came of it. What is trained is exactly these tokens. */
export interface Turn {
  /** Token ids of everything before the reply. */
  readonly prompt: readonly number[];
  /** The reply's token ids, with its end token where it said one. */
  readonly tokens: readonly number[];
  /** Log-probability of each token under the distribution that it was drawn from; of an action drawn by its score, that alone. */
  readonly logProbs: readonly number[];
  /** Of the state before each token as it was sampled, NaN where it is not known; undefined where none is. */
  readonly values?: readonly number[];
  /** The tokens among which each was drawn, for a reply held to choices; undefined for a free one. */
  readonly allowedTokens: readonly Int32Array[] | undefined;
  /** For an action that was drawn by its score. */
  readonly actionCandidates?: ActionCandidates;
  readonly text: string;
  readonly finishReason: FinishReason;
  /** Whether an action was read out of the reply. */
  readonly isValid: boolean;
  /** How the action was found; undefined for a reply that is no action, but an answer. */
  readonly extraction?: Extraction<unknown>["kind"];
  /** Replies that were drawn until this one, itself included. */
  readonly attempts: number;
  /** What was taken from the reward because the reply meant no action. */
  readonly penalty: number;
  /** What the environment gave for the action, and whatever was added or taken by the agent's own rules. */
  reward: number;
}

/**
 * Why a stretch of turns ends: the task ended, something outside it ended the episode, or only the collecting paused and
 * the episode goes on.
 */
export type TrajectoryEnd = "terminated" | "truncated" | "partial";

/** Consecutive turns of one episode, to be trained together. */
export interface Trajectory {
  readonly turns: readonly Turn[];
  readonly end: TrajectoryEnd;
  /** The prompt that would have come next, for the value of what is cut off; undefined where nothing follows. */
  readonly bootstrapPrompt: readonly number[] | undefined;
  /** Segments of one group started alike (GRPO). */
  readonly group?: number;
  /** Who played it: segments of one seat that follow one another are of one episode, up to its end. */
  readonly envSlot?: number;
  /** False for a segment that goes on with an episode; one that does not say is a beginning. */
  readonly startsEpisode?: boolean;
  /** What several reward functions gave for a single reply; NaN where one gave nothing. */
  readonly rewardsPerFunction?: readonly number[];
}

/** An episode that has ended, in numbers. */
export interface EpisodeSummary {
  /** Sum of the environment's rewards. */
  readonly return: number;
  readonly turns: number;
  readonly end: TrajectoryEnd;
}
