import type { OptimizerState } from "../../engine/optim/index.js";
import type { Trajectory } from "../rollout/trajectory.js";
import type { RandomStream } from "../../core/random/random-stream.js";

/** Metrics of one update by name; see docs/metrics.md. */
export type Metrics = Readonly<Record<string, number>>;

/** The rollout a learner needs for one update. */
export type RolloutSpec =
  /** At least `turns` turns; unfinished episodes continue after the update. */
  { readonly kind: "turns"; readonly turns: number } | GroupSpec;

/** Groups of complete episodes that start alike. */
export interface GroupSpec {
  readonly kind: "groups";
  readonly groups: number;
  readonly groupSize: number;
  /** Repeats the collection until there are at least this many turns. */
  readonly minTurns: number;
  /** Times that groups without signal are replaced by others. */
  readonly maxResamples: number;
  /** Whether a group has advantages other than 0. */
  readonly hasSignal: (group: readonly Trajectory[]) => boolean;
}

/** How a policy samples and how its updates run. */
export interface LearnerContext {
  /** Sampling temperature. */
  readonly temperature: number;
  /** Whether tokens are sampled from a truncated distribution (top-p and the like). */
  readonly isTruncatedSampling: boolean;
  /** Maximum length of a completion in tokens: default of an algorithm's setting of this name. */
  readonly maxCompletionLength?: number | undefined;
  /** Token budget of a micro-batch. */
  readonly microBatchTokens: number;
  /** Shuffles minibatches and seeds dropout. */
  readonly random: RandomStream;
}

/** State of a learner without the trained parameters. */
export interface LearnerState {
  readonly optimizer: OptimizerState;
  /** JSON. */
  readonly state: unknown;
}

/** Options of `Learner.update`. */
export interface UpdateOptions {
  /** Fraction of the run that is done, 0 to 1, for schedules. Default 0. */
  readonly progress?: number;
}

/** Updates the trained parameters of a model from trajectories; `Batch` is what an update needs of them. */
export interface Learner<Batch = unknown> {
  readonly rolloutSpec: RolloutSpec;
  /** Scores trajectories and computes their advantages. @throws INVALID_ARGUMENT for trajectories that cannot be trained. */
  prepare(trajectories: readonly Trajectory[]): Promise<Batch>;
  /** Takes the optimizer steps of an update. @throws TRAINING_DIVERGED. */
  update(batch: Batch, options?: UpdateOptions): Promise<Metrics>;
  getState(): Promise<LearnerState>;
  setState(state: LearnerState): Promise<void>;
  release(): Promise<void>;
}
