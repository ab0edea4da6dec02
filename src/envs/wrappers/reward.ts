import { checkOptions, PROBABILITY, requireOptions, type ValueKind } from "../../core/settings.js";
import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import type { Env, StepResult } from "../env.js";
import { RewardWrapper, Wrapper } from "../wrapper.js";
import { EPSILON, RunningMeanStd } from "./running-mean-std.js";

/** Transforms rewards by a function. */
export class TransformReward<Observation, Action> extends RewardWrapper<Observation, Action> {
  override readonly reward: (reward: number) => number;

  constructor(env: Env<Observation, Action>, options: { readonly reward: (reward: number) => number }) {
    super(env);
    requireOptions("TransformReward", options, { reward: Function });
    this.reward = options.reward;
  }
}

/** Options of `ClipReward`. */
export interface ClipRewardOptions {
  /** Null: none. */
  readonly minReward?: number | null;
  /** Null: none. */
  readonly maxReward?: number | null;
}

/** The kind of a bound. */
const BOUND: ValueKind = {
  expected: "a number, or null for none",
  isOf: (value) => value === null || (typeof value === "number" && !Number.isNaN(value)),
};

/** Clips rewards to one or two bounds. */
export class ClipReward<Observation, Action> extends RewardWrapper<Observation, Action> {
  private readonly minReward: number;
  private readonly maxReward: number;

  constructor(env: Env<Observation, Action>, options: ClipRewardOptions = {}) {
    super(env);
    checkOptions("ClipReward", options, { minReward: BOUND, maxReward: BOUND });
    const { minReward = null, maxReward = null } = options;
    if (minReward === null && maxReward === null)
      throw invalidArgument("ClipReward needs minReward, maxReward or both.");
    this.minReward = minReward ?? -Infinity;
    this.maxReward = maxReward ?? Infinity;
    if (this.minReward > this.maxReward)
      throw invalidArgument(`Min reward (${minReward}) must be smaller than max reward (${maxReward})`);
  }

  override reward(reward: number): number {
    return Math.min(Math.max(reward, this.minReward), this.maxReward);
  }
}

/** Options of `NormalizeReward`. */
export interface NormalizeRewardOptions {
  /** Discount of the running return. */
  readonly gamma?: number;
  readonly epsilon?: number;
}

/**
 * Divides rewards by the standard deviation of the discounted return, without centering. The return
 * is reset on termination, not on truncation. Set `updateRunningMean` to false for an evaluation.
 */
export class NormalizeReward<Observation, Action> extends Wrapper<Observation, Action> {
  updateRunningMean = true;
  private readonly gamma: number;
  private readonly epsilon: number;
  private readonly returns = new RunningMeanStd(1);
  private discountedReturn = 0;

  constructor(env: Env<Observation, Action>, options: NormalizeRewardOptions = {}) {
    super(env);
    checkOptions("NormalizeReward", options, { gamma: PROBABILITY, epsilon: EPSILON });
    const { gamma = 0.99, epsilon = 1e-8 } = options;
    this.gamma = gamma;
    this.epsilon = epsilon;
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => {
      const discountedReturn = this.discountedReturn * this.gamma * (result.terminated ? 0 : 1) + result.reward;
      if (!Number.isFinite(discountedReturn)) return result;
      this.discountedReturn = discountedReturn;
      if (this.updateRunningMean) this.returns.update([discountedReturn]);
      return { ...result, reward: result.reward / Math.sqrt(this.returns.variance[0] + this.epsilon) };
    });
  }

  protected override saveState(): JsonValue {
    return { returns: this.returns.save(), discountedReturn: this.discountedReturn };
  }

  protected override loadState(json: JsonValue): void {
    const { returns, discountedReturn } = json as { returns: JsonValue; discountedReturn: number };
    this.returns.load(returns);
    this.discountedReturn = discountedReturn;
  }
}
