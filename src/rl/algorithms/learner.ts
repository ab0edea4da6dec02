import type { OptimizerState } from "../../engine/optim/index.js";
import type { Trajectory } from "../rollout/trajectory.js";
import type { RandomStream } from "../../core/random/random-stream.js";

/** Numbers of one update by name; docs/metrics.md says what each means. */
export type Metrics = Readonly<Record<string, number>>;

/** What a learner wants to be played for an update. */
export type RolloutSpec =
  /** At least so many turns; episodes may be cut and go on after the update. */
  { readonly kind: "turns"; readonly turns: number } | GroupSpec;

/** So many groups of episodes that start alike. */
export interface GroupSpec {
  readonly kind: "groups";
  readonly groups: number;
  readonly groupSize: number;
  /** As many groups again are played until there are so many turns. */
  readonly minTurns: number;
  /** Times that other groups may be played in place of those that teach nothing. */
  readonly maxResamples: number;
  /** Whether anything is to be learnt from the episodes of a group. */
  readonly hasSignal: (group: readonly Trajectory[]) => boolean;
}

/** What a learner must know of the policy besides its parameters. */
export interface LearnerContext {
  /** Temperature at which replies are drawn. */
  readonly temperature: number;
  /** Whether tokens are drawn from less than the model's own distribution (top-p and the like). */
  readonly isTruncatedSampling: boolean;
  /** Tokens of one forward and backward pass; larger minibatches take several. */
  readonly maxTokens: number;
  /** Shuffles minibatches and decides dropout. */
  readonly random: RandomStream;
}

/** Everything that a resumed run needs of a learner besides the trained parameters. */
export interface LearnerState {
  readonly optimizer: OptimizerState;
  /** Whatever else; JSON. */
  readonly state: unknown;
}

export interface UpdateOptions {
  /** How much of the run is done, 0 to 1, for schedules. Default 0. */
  readonly progress?: number;
}

/** An algorithm at work on a model: it is given what was played and updates the trained parameters. */
export interface Learner {
  readonly rolloutSpec: RolloutSpec;
  /** One update. Throws INVALID_ARGUMENT for experience that cannot be trained, TRAINING_DIVERGED. */
  update(trajectories: readonly Trajectory[], options?: UpdateOptions): Promise<Metrics>;
  getState(): Promise<LearnerState>;
  setState(state: LearnerState): Promise<void>;
  release(): Promise<void>;
}
