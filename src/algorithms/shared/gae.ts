import type { Numbers } from "./statistics.js";

type Flags = ArrayLike<boolean | number>;

/** What generalised advantage estimation sees of consecutive steps: tokens of a reply, or turns of episodes. */
export interface GaeSteps {
  /** Reward for each step. */
  readonly rewards: Numbers;
  /** Value of the state before each step. */
  readonly values: Numbers;
  /** The episode ended with this step: nothing follows. None by default. */
  readonly terminated?: Flags;
  /** The episode was cut after this step: what follows is worth bootstrap[t]. None by default. */
  readonly truncated?: Flags;
  /** Value of the state after step t, read where the steps are cut and after the last one that is not terminated. 0 by default. */
  readonly bootstrap?: Numbers;
}

export interface Advantages {
  readonly advantages: Float64Array;
  /** advantages + values: what the critic learns. */
  readonly returns: Float64Array;
}

/**
 * Generalised advantage estimation (Schulman et al. 2016): A_t = delta_t + gamma * lam * A_(t+1) with
 * delta_t = r_t + gamma * V_(t+1) - V_t. Nothing flows back over the end of an episode.
 */
export function generalisedAdvantages(
  { rewards, values, terminated = [], truncated = [], bootstrap = [] }: GaeSteps,
  { gamma, lam }: { gamma: number; lam: number },
): Advantages {
  const n = rewards.length;
  const advantages = new Float64Array(n);
  const returns = new Float64Array(n);
  let running = 0;
  for (let t = n - 1; t >= 0; t--) {
    const ended = Boolean(terminated[t]);
    const cut = Boolean(truncated[t]) || t === n - 1;
    const following = ended ? 0 : cut ? (bootstrap[t] ?? 0) : values[t + 1];
    const delta = rewards[t] + gamma * following - values[t];
    running = delta + (ended || cut ? 0 : gamma * lam * running);
    advantages[t] = running;
    returns[t] = running + values[t];
  }
  return { advantages, returns };
}
