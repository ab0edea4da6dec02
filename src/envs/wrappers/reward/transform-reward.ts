import { invalidArgument } from "../../../core/errors.js";
import type { Env } from "../../env.js";
import { RewardWrapper } from "../../wrapper.js";

/** Transforms rewards by a function. */
export class TransformReward<Observation, Action> extends RewardWrapper<Observation, Action> {
  private readonly transform: (reward: number) => number;

  constructor(env: Env<Observation, Action>, { reward }: { readonly reward: (reward: number) => number }) {
    super(env);
    this.transform = reward;
  }

  override reward(reward: number): number {
    return this.transform(reward);
  }
}

/** Options of `ClipReward`. */
export interface ClipRewardOptions {
  readonly minReward?: number;
  readonly maxReward?: number;
}

/** Clips rewards to one or two bounds. */
export class ClipReward<Observation, Action> extends RewardWrapper<Observation, Action> {
  private readonly minReward: number;
  private readonly maxReward: number;

  constructor(env: Env<Observation, Action>, { minReward, maxReward }: ClipRewardOptions) {
    super(env);
    if (minReward === undefined && maxReward === undefined) {
      throw invalidArgument("ClipReward needs minReward, maxReward or both.");
    }
    this.minReward = minReward ?? -Infinity;
    this.maxReward = maxReward ?? Infinity;
    if (this.minReward > this.maxReward) {
      throw invalidArgument(`Min reward (${minReward}) must be smaller than max reward (${maxReward})`);
    }
  }

  override reward(reward: number): number {
    return Math.min(Math.max(reward, this.minReward), this.maxReward);
  }
}
