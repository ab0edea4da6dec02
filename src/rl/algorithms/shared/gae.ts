import type { NumberArray } from "./statistics.js";

type Flags = ArrayLike<boolean | number>;

/** What generalized advantage estimation sees of consecutive steps: tokens of a reply, or turns of episodes. */
export interface GaeSteps {
  /** Reward for each step. */
  readonly rewards: NumberArray;
  /** Value of the state before each step. */
  readonly values: NumberArray;
  /** The episode ended with this step: nothing follows. None by default. */
  readonly terminated?: Flags;
  /** The episode was cut after this step: what follows is worth bootstrap[t]. None by default. */
  readonly truncated?: Flags;
  /** Value of the state after step t, read where the steps are cut and after the last one that is not terminated. 0 by default. */
  readonly bootstrap?: NumberArray;
}

export interface Advantages {
  readonly advantages: Float64Array;
  /** advantages + values: what the critic learns. */
  readonly returns: Float64Array;
}

/**
 * Generalized advantage estimation (Schulman et al. 2016): A_t = delta_t + gamma * lam * A_(t+1) with
 * delta_t = r_t + gamma * V_(t+1) - V_t. Nothing flows back over the end of an episode.
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
