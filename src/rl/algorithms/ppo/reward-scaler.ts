import { discountedReturns } from "../shared/discounted-returns.js";
import type { NumberArray } from "../shared/statistics.js";
import type { PpoConfig } from "./settings.js";

export interface RewardScaleState {
  readonly count: number;
  /** Sum of squared returns. */
  readonly squares: number;
  /** Sum of squared returns without bootstrap values. */
  readonly rewardSquares?: number;
  /** Whether the first returns other than 0 were small; undefined before there were any. */
  readonly isSmall?: boolean;
}

/** Rewards of consecutive turns. */
export interface RewardSequence {
  readonly rewards: NumberArray;
  /** Value, in scaled rewards, of the state after the last turn; 0 where the episode ended. */
  readonly bootstrap: number;
}

export const INITIAL_REWARD_SCALE: RewardScaleState = { count: 0, squares: 0 };

/**
 * Root mean square of the first returns below which rewards are scaled up: errors of a new value
 * head would hide them.
 */
const SMALL_RETURN = 0.05;

/**
 * Divides rewards by the root mean square of all discounted returns so far, if it is above 1 or if
 * it was below 0.05 at first, so that values stay of order 1, which suits the learning rate, the
 * value loss's weight and its clipping. Modeled on Gymnasium's NormalizeReward, which uses the
 * standard deviation. Then clips to ±rewardClip.
 */
export class RewardScaler {
  constructor(
    private readonly config: Pick<PpoConfig, "gamma" | "rewardScale" | "rewardScaling" | "rewardClip">,
    private statistics: RewardScaleState = INITIAL_REWARD_SCALE,
  ) {}

  /** The divisor. */
  get scale(): number {
    const { count, squares, rewardSquares = 0, isSmall = false } = this.statistics;
    if (!this.config.rewardScaling || count === 0) return 1;
    // Bootstrap values are in unscaled rewards, but the errors of a new value head are not small.
    return isSmall ? Math.sqrt(rewardSquares / count) : Math.max(1, Math.sqrt(squares / count));
  }

  /**
   * Adds the returns of a batch to the statistics, except those of sequences whose squares are not
   * finite.
   */
  observe(sequences: readonly RewardSequence[]): void {
    if (!this.config.rewardScaling) return;
    const { gamma, rewardScale } = this.config;
    let { count, squares, rewardSquares = 0, isSmall } = this.statistics;
    for (const { rewards, bootstrap } of sequences) {
      const bootstrapReward = gamma * bootstrap * this.scale;
      const last = rewards.length - 1;
      const withBootstrap = Array.from(
        rewards,
        (reward, i) => reward * rewardScale + (i === last ? bootstrapReward : 0),
      );
      const total = addSquares(squares, discountedReturns(withBootstrap, { gamma }));
      if (!Number.isFinite(total)) continue;
      squares = total;
      const scaled = Array.from(rewards, (reward) => reward * rewardScale);
      rewardSquares = addSquares(rewardSquares, discountedReturns(scaled, { gamma }));
      count += rewards.length;
    }
    if (rewardSquares > 0) isSmall ??= Math.sqrt(rewardSquares / count) < SMALL_RETURN;
    this.statistics = { count, squares, rewardSquares, isSmall };
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

const addSquares = (sum: number, values: Float64Array): number =>
  values.reduce((total, value) => total + value ** 2, sum);
