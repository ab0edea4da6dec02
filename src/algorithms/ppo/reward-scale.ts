import { discountedReturns } from "../shared/returns.js";
import type { Numbers } from "../shared/statistics.js";
import type { PpoConfig } from "./config.js";

export interface RewardScaleState {
  readonly count: number;
  /** Sum of the squares of all returns so far. */
  readonly squares: number;
}

/** Rewards of consecutive turns. */
export interface RewardRow {
  readonly rewards: Numbers;
  /** Value, in scaled rewards, of the state in which the row was cut; 0 where the episode ended. */
  readonly bootstrap: number;
}

const NOTHING_SEEN: RewardScaleState = { count: 0, squares: 0 };

/**
 * What rewards are divided by before they train: the root mean square of all discounted returns so far, so that values stay about
 * as large as 1, which is what learning rates, the value loss's weight and its clipping fit. Never less than 1: small rewards are
 * not blown up. After Gymnasium's NormalizeReward, which takes the deviation. Then rewards are clipped to +-rewardClip.
 */
export class RewardScale {
  constructor(
    private readonly config: Pick<PpoConfig, "gamma" | "rewardScaling" | "rewardClip">,
    private seen: RewardScaleState = NOTHING_SEEN,
  ) {}

  /** The divisor. */
  get scale(): number {
    const { count, squares } = this.seen;
    return this.config.rewardScaling && count > 0 ? Math.max(1, Math.sqrt(squares / count)) : 1;
  }

  /** Takes in the returns of a batch. */
  observe(rows: readonly RewardRow[]): void {
    if (!this.config.rewardScaling) return;
    const { gamma } = this.config;
    let { count, squares } = this.seen;
    for (const { rewards, bootstrap } of rows) {
      const ahead = gamma * bootstrap * this.scale;
      const last = rewards.length - 1;
      const whole = Array.from(rewards, (reward, i) => (i === last ? reward + ahead : reward));
      for (const value of discountedReturns(whole, { gamma })) squares += value ** 2;
      count += rewards.length;
    }
    this.seen = { count, squares };
  }

  /** A reward as it trains. */
  apply(reward: number): number {
    const { rewardClip = Infinity } = this.config;
    return Math.min(rewardClip, Math.max(-rewardClip, reward / this.scale));
  }

  state(): RewardScaleState {
    return this.seen;
  }
}
