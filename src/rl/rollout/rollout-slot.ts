import type { JsonValue } from "../../core/json.js";
import type { RandomState } from "../../core/random/random-stream.js";
import type { EnvState, Info } from "../../envs/index.js";
import type { PromptBuilderState } from "./prompt-builder.js";
import type { EpisodeSummary, GameOpponent, Trajectory } from "./trajectory.js";

/** Against whom a game is played; by default the trained policy moves for all seats. */
export interface Matchup {
  readonly opponent: GameOpponent;
  /** The seat of the trained policy; all seats against itself. */
  readonly seat?: number;
  /** Version of the past opponent, the updates that produced it, or of the adapter, below 0. */
  readonly past?: number;
}

/** An episode to collect. */
export interface EpisodeSpec {
  /** Seed of the environment; without one its random stream continues. */
  readonly seed?: number;
  /** Group whose episodes are compared with each other. */
  readonly group?: number;
  /** Whether the episode is recorded. Default false. */
  readonly record?: boolean;
  /** Of a game, who plays. Default: the trained policy on all seats. */
  readonly matchup?: Matchup;
}

/** A finished episode: one trajectory, or in a game one for each seat of the trained policy. */
export interface EndedEpisode {
  readonly trajectories: readonly Trajectory[];
  readonly summary: EpisodeSummary;
}

/** What a collector needs of a slot: an `EnvSlot` or a `GameSlot`. */
export interface RolloutSlot {
  readonly isRunning: boolean;
  /** Starts an episode; without a spec as the slot was configured. */
  start(spec?: EpisodeSpec): Promise<void>;
  /** Samples one completion; returns the episode if it ends with it. */
  step(signal?: AbortSignal): Promise<EndedEpisode | undefined>;
  /**
   * Number of turns since the last trajectory was taken; absent in slots whose episodes are
   * collected whole.
   */
  readonly pendingTurns?: number;
  takeTrajectory?(): Trajectory;
  getState(options?: { readonly dropEpisode?: boolean }): EnvSlotState;
  setState(state: EnvSlotState): void;
}

/** State of an EnvSlot as JSON, except for the model's. */
export interface EnvSlotState {
  /** null if no episode was started, or if the environment does not support saving. */
  readonly env: EnvState | null;
  readonly hasStarted: boolean;
  readonly random: RandomState;
  /** null between episodes, or if the environment does not support saving. */
  readonly episode: {
    readonly promptBuilder: PromptBuilderState;
    readonly observation: JsonValue;
    readonly info: Info;
    readonly return: number;
    readonly turns: number;
  } | null;
}
