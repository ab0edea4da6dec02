import { concatenate, sum } from "../shared/arrays.js";
import { mapEachStep } from "../shared/discounted-returns.js";
import { combineRewards, splitIntoGroups } from "../shared/combine-rewards.js";
import { withoutNaN, nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import type { RlooConfig } from "./settings.js";

export interface RlooAdvantages {
  /** [samples]; 0 for unscored samples and those without others to compare with. */
  readonly advantages: Float64Array;
  /** Reward of each sample, clipped and minus its KL penalty; NaN for unscored samples. */
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
 * Computes advantages of groups of numGenerations consecutive samples: a sample's reward minus the
 * mean reward of the others in its group (Ahmadian et al. 2024). `perFunction` is
 * [samples][functions], NaN for missing rewards; `kls` is each sample's KL to the reference, summed
 * over tokens, of which beta times is subtracted from the reward.
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

/** Clips a reward to the configured bounds; NaN stays. */
export function clipReward(
  reward: number,
  { rewardClipMin = -Infinity, rewardClipMax = Infinity }: Pick<RlooConfig, "rewardClipMin" | "rewardClipMax">,
): number {
  return Math.min(Math.max(reward, rewardClipMin), rewardClipMax);
}

/**
 * Subtracts from each return, [turns] per episode, the mean of the others of its group at the same
 * step; NaN without others.
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

/** Subtracts from each reward the mean of the others; NaN without others. */
function leaveOneOut(group: readonly number[]): number[] {
  const known = withoutNaN(group);
  const total = sum(known);
  return group.map((reward) => reward - (total - reward) / (known.length - 1));
}

/** Normalizes over the batch if configured, and replaces NaN by 0. */
export function scaleAdvantages(
  advantages: readonly Float64Array[],
  { normalizeAdvantages }: Pick<RlooConfig, "normalizeAdvantages">,
): Float64Array[] {
  const all = concatenate(advantages);
  const center = normalizeAdvantages ? nanMean(all) : 0;
  const scale = normalizeAdvantages ? nanStd(all) + STD_EPSILON : 1;
  return advantages.map((row) => row.map((advantage) => (Number.isNaN(advantage) ? 0 : (advantage - center) / scale)));
}
