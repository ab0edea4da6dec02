import { concatenate, sum } from "../shared/arrays.js";
import { mapEachStep } from "../shared/discounted-returns.js";
import { combineRewards, splitIntoGroups } from "../shared/combine-rewards.js";
import { withoutNaN, nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import type { RlooConfig } from "./settings.js";

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
  readonly rewardWeights?: NumberArray;
}

/**
 * Advantages of groups of numGenerations consecutive samples: a sample's reward less the mean reward of the others of its group
 * (Ahmadian et al. 2024). `perFunction` is [samples][functions], NaN where a function could not give one; `kls` is each sample's
 * divergence from the reference, summed over its tokens, of which beta times is taken from the reward.
 */
export function rlooAdvantages(
  perFunction: readonly NumberArray[],
  kls: NumberArray,
  { rewardWeights, ...config }: LeaveOneOutOptions,
): RlooAdvantages {
  const { beta, numGenerations } = config;
  const rewards = combineRewards(perFunction, rewardWeights).map((reward, i) => {
    const clipped = clipReward(reward, config);
    return beta === 0 ? clipped : clipped - beta * kls[i];
  });
  const groupStds = Float64Array.from(splitIntoGroups(rewards, numGenerations), nanStd);
  const samples = Array.from(rewards, (reward) => [reward]);
  const groups = Array.from(rewards, (_, i) => Math.floor(i / numGenerations));
  const scores = scaleAdvantages(leaveOneOutAdvantages(samples, groups), config);
  return { advantages: Float64Array.from(scores, ([score]) => score), rewards, groupStds };
}

/** A reward within the bounds that the settings give; NaN stays. */
export function clipReward(
  reward: number,
  { rewardClipMin = -Infinity, rewardClipMax = Infinity }: Pick<RlooConfig, "rewardClipMin" | "rewardClipMax">,
): number {
  return Math.min(Math.max(reward, rewardClipMin), rewardClipMax);
}

/**
 * Each credit less the mean of the others that episodes of its group have at the same step; NaN where there are no others.
 * `credits` are each episode's, [turns].
 */
export function leaveOneOutAdvantages(returns: readonly NumberArray[], groups: readonly number[]): Float64Array[] {
  const advantages: Float64Array[] = [];
  for (const group of new Set(groups)) {
    const members = groups.flatMap((other, i) => (other === group ? [i] : []));
    const values = mapEachStep(
      members.map((i) => returns[i]),
      leaveOneOut,
    );
    members.forEach((i, position) => (advantages[i] = values[position]));
  }
  return advantages;
}

/** Each reward less the mean of the others; NaN where there are no others. */
function leaveOneOut(group: readonly number[]): number[] {
  const known = withoutNaN(group);
  const total = sum(known);
  return group.map((reward) => reward - (total - reward) / (known.length - 1));
}

/** Scores as advantages: over the batch at mean 0 and deviation 1 where the settings say so, and 0 where there is none. */
export function scaleAdvantages(
  advantages: readonly Float64Array[],
  { normalizeAdvantages }: Pick<RlooConfig, "normalizeAdvantages">,
): Float64Array[] {
  const all = concatenate(advantages);
  const center = normalizeAdvantages ? nanMean(all) : 0;
  const scale = normalizeAdvantages ? nanStd(all) + STD_EPSILON : 1;
  return advantages.map((row) => row.map((advantage) => (Number.isNaN(advantage) ? 0 : (advantage - center) / scale)));
}
