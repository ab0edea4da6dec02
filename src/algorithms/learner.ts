import type { OptimizerState } from "../optim/index.js";
import type { Segment } from "../rollout/turn.js";
import type { RandomStream } from "../tensor/random.js";

/** Numbers of one update by name; docs/metrics.md says what each means. */
export type Metrics = Readonly<Record<string, number>>;

/** What a learner wants to be played for an update. */
export type ExperienceWish =
  /** At least so many turns; episodes may be cut and go on after the update. */
  { readonly kind: "turns"; readonly turns: number } | GroupWish;

/** So many groups of episodes that start alike. */
export interface GroupWish {
  readonly kind: "groups";
  readonly groups: number;
  readonly groupSize: number;
  /** As many groups again are played until there are so many turns. */
  readonly minTurns: number;
  /** Times that other groups may be played in place of those that teach nothing. */
  readonly refills: number;
  /** Whether anything is to be learnt from the episodes of a group. */
  readonly teaches: (group: readonly Segment[]) => boolean;
}

/** What a learner must know of the policy besides its parameters. */
export interface PolicyTraits {
  /** Temperature at which replies are drawn. */
  readonly temperature: number;
  /** Whether tokens are drawn from less than the model's own distribution (top-p and the like). */
  readonly isTruncated: boolean;
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
  readonly done?: number;
}

/** An algorithm at work on a model: it is given what was played and updates the trained parameters. */
export interface Learner {
  readonly wish: ExperienceWish;
  /** One update. Throws INVALID_ARGUMENT for experience that cannot be trained, TRAINING_DIVERGED. */
  update(segments: readonly Segment[], options?: UpdateOptions): Promise<Metrics>;
  getState(): Promise<LearnerState>;
  setState(state: LearnerState): Promise<void>;
  release(): Promise<void>;
}
