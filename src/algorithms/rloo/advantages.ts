import { sum } from "../shared/arrays.js";
import { combineRewards, groupsOf } from "../shared/rewards.js";
import { defined, nanMean, nanStd, STD_EPSILON, type Numbers } from "../shared/statistics.js";
import type { RlooConfig } from "./config.js";

export interface RlooAdvantages {
  /** [samples]; 0 for a sample that could not be scored, or that has no other to be compared with. */
  readonly advantages: Float64Array;
  /** Reward of each sample, clipped and less its penalty; NaN for one that could not be scored. */
  readonly rewards: Float64Array;
  /** Standard deviation (n - 1) of each group's rewards. */
  readonly groupStds: Float64Array;
}

export interface LeaveOneOutOptions extends Pick<
  RlooConfig,
  "numGenerations" | "beta" | "normalizeAdvantages" | "rewardClipMin" | "rewardClipMax"
> {
  /** Weight of each reward function; 1 by default. */
  readonly rewardWeights?: Numbers;
}

/**
 * Advantages of groups of numGenerations consecutive samples: a sample's reward less the mean reward of the others of its group
 * (Ahmadian et al. 2024). `perFunction` is [samples][functions], NaN where a function could not give one; `kls` is each sample's
 * divergence from the reference, summed over its tokens, of which beta times is taken from the reward.
 */
export function rlooAdvantages(
  perFunction: readonly Numbers[],
  kls: Numbers,
  {
    numGenerations,
    beta,
    normalizeAdvantages,
    rewardClipMin = -Infinity,
    rewardClipMax = Infinity,
    rewardWeights,
  }: LeaveOneOutOptions,
): RlooAdvantages {
  const rewards = combineRewards(perFunction, rewardWeights).map((reward, i) => {
    const clipped = Math.min(Math.max(reward, rewardClipMin), rewardClipMax);
    return beta === 0 ? clipped : clipped - beta * kls[i];
  });
  const groups = groupsOf(rewards, numGenerations);
  const raw = Float64Array.from(groups.flatMap(leaveOneOut));
  const centre = nanMean(raw);
  const scale = nanStd(raw) + STD_EPSILON;
  const scores = normalizeAdvantages ? raw.map((score) => (score - centre) / scale) : raw;
  return {
    advantages: scores.map((score) => (Number.isNaN(score) ? 0 : score)),
    rewards,
    groupStds: Float64Array.from(groups, nanStd),
  };
}

/** Each reward less the mean of the others; NaN where there are no others. */
function leaveOneOut(group: readonly number[]): number[] {
  const scored = defined(group);
  const total = sum(scored);
  return group.map((reward) => reward - (total - reward) / (scored.length - 1));
}
