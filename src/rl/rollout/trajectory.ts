import type { TokenDistribution } from "../../engine/runtime/index.js";
import type { FinishReason } from "../../generation/index.js";
import type { Extraction } from "./extraction.js";

/**
 * The actions among which one was sampled by its score, the softmax of weight * (sum of its text's
 * log-probabilities).
 */
export interface ActionCandidates {
  /** Token ids of each action's text. */
  readonly sequences: readonly (readonly number[])[];
  /** Factor of each sum: 1 / (normalizing length * temperature). */
  readonly weights: readonly number[];
  readonly chosen: number;
  /** Probabilities when the action was sampled, for recordings. */
  readonly probabilities?: readonly number[];
}

/** What a recorded turn has in addition to what training needs. */
export interface TurnRecording {
  /** The observation as the prompt contains it. */
  readonly observation: string;
  /** The environment's "ansi" rendering before the turn; undefined without one. */
  readonly render: string | undefined;
  /** The action as text. */
  readonly action: string | undefined;
  /** Distributions that the tokens were sampled from, where they are known. */
  readonly distributions: readonly (TokenDistribution | undefined)[];
}

/** One prompt and completion of the policy with its reward. Training uses exactly these tokens. */
export interface Turn {
  /** Token ids of everything before the completion. */
  readonly prompt: readonly number[];
  /** Token ids of the completion, including a sampled end token. */
  readonly tokens: readonly number[];
  /**
   * Log-probability of each token under the distribution it was sampled from; one value for an
   * action sampled by its score.
   */
  readonly logProbs: readonly number[];
  /**
   * Value of the state before each token when it was sampled, NaN where unknown; undefined if all
   * are.
   */
  readonly values?: readonly number[];
  /**
   * The tokens among which each token was sampled and is trained; undefined for the whole
   * vocabulary.
   */
  readonly allowedTokens: readonly (Int32Array | undefined)[] | undefined;
  /**
   * Whether `allowedTokens` are those that top-k, top-p and min-p kept, which turns do not share.
   */
  readonly hasKeptTokens?: boolean;
  /** What only a teacher's prompt has in this turn. */
  readonly teacherHint?: string;
  /** The prompt of a teacher with hints, for prompts of a dataset. */
  readonly teacherPrompt?: readonly number[];
  /** Only for an action sampled by its score. */
  readonly actionCandidates?: ActionCandidates;
  /**
   * Number of tokens of tool results among `tokens`, which the policy did not sample. Default 0.
   */
  readonly numToolTokens?: number;
  readonly text: string;
  readonly finishReason: FinishReason;
  /** Whether an action was extracted from the completion. */
  readonly isValid: boolean;
  /** How the action was extracted; undefined for completions of prompts without an environment. */
  readonly extraction?: Extraction<unknown>["kind"];
  /** Number of completions sampled for the turn, including this one. */
  readonly attempts: number;
  /** Amount subtracted from the reward because the completion had no action. */
  readonly penalty: number;
  /** Only in recorded episodes. */
  readonly recording?: TurnRecording;
  /** The environment's reward minus the penalty, plus rewards assigned by the agent. */
  reward: number;
}

/** Returns the number of tokens of a completion that the policy sampled. */
export function completionLength({ tokens, numToolTokens = 0 }: Pick<Turn, "tokens" | "numToolTokens">): number {
  return tokens.length - numToolTokens;
}

/**
 * Why a trajectory ends: the episode terminated, was truncated, or continues in the next
 * trajectory.
 */
export type TrajectoryEnd = "terminated" | "truncated" | "partial";

/** Consecutive turns of one episode. */
export interface Trajectory {
  readonly turns: readonly Turn[];
  readonly end: TrajectoryEnd;
  /**
   * The next prompt, whose value replaces the missing rewards; undefined for a terminated episode.
   */
  readonly bootstrapPrompt: readonly number[] | undefined;
  /** Trajectories of one group start in the same state (GRPO). */
  readonly group?: number;
  /** Index of the slot; its consecutive trajectories belong to one episode until that ends. */
  readonly envSlot?: number;
  /** Whether the trajectory starts an episode. Default true. */
  readonly startsEpisode?: boolean;
  /** Seed of the environment, if the episode was started with one. */
  readonly seed?: number;
  /** The state after the last turn, of a recorded episode that ended. */
  readonly final?: Pick<TurnRecording, "render"> & { readonly observation: string | undefined };
  /** Updates between the weights that sampled it and those that it trains; undefined for none. */
  readonly staleness?: number;
  /** Rewards of several reward functions for a single completion; NaN where one returned none. */
  readonly rewardsPerFunction?: readonly number[];
  /**
   * Of a game, the seat whose turns these are. Trajectories of different seats are never compared.
   */
  readonly seat?: number;
  /** Of a game, who moved for the other seats. */
  readonly opponent?: GameOpponent;
}

/**
 * Who moves for the other seats of a game: the trained policy too, an earlier version of it, an
 * adapter of another run, or a player without a model.
 */
export const GAME_OPPONENTS = ["self", "past", "adapter", "random", "minimax"] as const;
export type GameOpponent = (typeof GAME_OPPONENTS)[number];

/** Totals of a finished episode. */
export interface EpisodeSummary {
  /** Sum of the environment's rewards. */
  readonly return: number;
  readonly turns: number;
  readonly end: TrajectoryEnd;
  /** What the environment said with `is_success` in its last info; undefined where it did not. */
  readonly isSuccess?: boolean;
  readonly game?: GameSummary;
}

/** Totals of a finished game. */
export interface GameSummary {
  readonly opponent: GameOpponent;
  /** Version of the past opponent or of the adapter. */
  readonly past?: number;
  /** Seats of the trained policy. */
  readonly seats: readonly number[];
  /** Sum of the rewards of each seat. */
  readonly returns: readonly number[];
  /** Illegal moves of the trained policy. */
  readonly illegalMoves: number;
}
