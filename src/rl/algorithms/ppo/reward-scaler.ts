import { discountedReturns } from "../shared/discounted-returns.js";
import type { NumberArray } from "../shared/statistics.js";
import type { PpoConfig } from "./settings.js";

export interface RewardScaleState {
  readonly count: number;
  /** Sum of squared returns. */
  readonly squares: number;
}

/** Rewards of consecutive turns. */
export interface RewardSequence {
  readonly rewards: NumberArray;
  /** Value, in scaled rewards, of the state after the last turn; 0 where the episode ended. */
  readonly bootstrap: number;
}

export const INITIAL_REWARD_SCALE: RewardScaleState = { count: 0, squares: 0 };

/**
 * Divides rewards by the root mean square of all discounted returns so far, if above 1, so that values
 * stay of order 1, which suits the learning rate, the value loss's weight and its clipping. Modeled on
 * Gymnasium's NormalizeReward, which uses the standard deviation. Then clips to ±rewardClip.
 */
export class RewardScaler {
  constructor(
    private readonly config: Pick<PpoConfig, "gamma" | "rewardScale" | "rewardScaling" | "rewardClip">,
    private statistics: RewardScaleState = INITIAL_REWARD_SCALE,
  ) {}

  /** The divisor. */
  get scale(): number {
    const { count, squares } = this.statistics;
    return this.config.rewardScaling && count > 0 ? Math.max(1, Math.sqrt(squares / count)) : 1;
  }

  /** Adds the returns of a batch to the statistics, except those of sequences whose squares are not finite. */
  observe(sequences: readonly RewardSequence[]): void {
    if (!this.config.rewardScaling) return;
    const { gamma, rewardScale } = this.config;
    let { count, squares } = this.statistics;
    for (const { rewards, bootstrap } of sequences) {
      const bootstrapReward = gamma * bootstrap * this.scale;
      const last = rewards.length - 1;
      const withBootstrap = Array.from(
        rewards,
        (reward, i) => reward * rewardScale + (i === last ? bootstrapReward : 0),
      );
      const total = discountedReturns(withBootstrap, { gamma }).reduce((sum, value) => sum + value ** 2, squares);
      if (!Number.isFinite(total)) continue;
      squares = total;
      count += rewards.length;
    }
    this.statistics = { count, squares };
  }

  /** Scales and clips a reward. */
  apply(reward: number): number {
    const { rewardScale, rewardClip = Infinity } = this.config;
    return Math.min(rewardClip, Math.max(-rewardClip, (reward * rewardScale) / this.scale));
  }

  getState(): RewardScaleState {
    return this.statistics;
  }
}
