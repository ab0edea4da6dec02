import type { NumberArray } from "./statistics.js";

type Flags = ArrayLike<boolean | number>;

/**
 * Consecutive steps for generalized advantage estimation: tokens of a completion, or turns of
 * episodes.
 */
export interface GaeSteps {
  /** Reward for each step. */
  readonly rewards: NumberArray;
  /** Value of the state before each step. */
  readonly values: NumberArray;
  /** Whether the episode terminated with this step. Default false. */
  readonly terminated?: Flags;
  /**
   * Whether the episode was truncated after this step, so that bootstrap[t] replaces what follows.
   * Default false.
   */
  readonly truncated?: Flags;
  /**
   * Value of the state after step t, read at truncated steps and after the last step if it is not
   * terminated. Default 0.
   */
  readonly bootstrap?: NumberArray;
}

export interface Advantages {
  readonly advantages: Float64Array;
  /** advantages + values: the targets of the value loss. */
  readonly returns: Float64Array;
}

/**
 * Computes generalized advantage estimates (Schulman et al. 2016): A_t = delta_t + gamma * lam *
 * A_(t+1) with delta_t = r_t + gamma * V_(t+1) - V_t. Nothing propagates across the end of an
 * episode.
 */
export function generalizedAdvantages(
  { rewards, values, terminated = [], truncated = [], bootstrap = [] }: GaeSteps,
  { gamma, lam }: { gamma: number; lam: number },
): Advantages {
  const n = rewards.length;
  const advantages = new Float64Array(n);
  const returns = new Float64Array(n);
  let running = 0;
  for (let t = n - 1; t >= 0; t--) {
    const isTerminated = Boolean(terminated[t]);
    const isTruncated = Boolean(truncated[t]) || t === n - 1;
    const nextValue = isTerminated ? 0 : isTruncated ? (bootstrap[t] ?? 0) : values[t + 1];
    const delta = rewards[t] + gamma * nextValue - values[t];
    running = delta + (isTerminated || isTruncated ? 0 : gamma * lam * running);
    advantages[t] = running;
    returns[t] = running + values[t];
  }
  return { advantages, returns };
}
