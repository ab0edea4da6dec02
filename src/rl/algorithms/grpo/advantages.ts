import { combineRewards, splitIntoGroups } from "../shared/combine-rewards.js";
import { nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import { groupRelativeAdvantages } from "./group-relative-advantages.js";
import type { GrpoConfig } from "./settings.js";

export interface GroupAdvantages {
  /** [samples]; 0 for unscored samples. */
  readonly advantages: Float64Array;
  /** Weighted sum of each sample's rewards; NaN for unscored samples. */
  readonly rewards: Float64Array;
  /** Standard deviation (n - 1) of each group's rewards. Groups with 0 have no signal. */
  readonly groupStds: Float64Array;
}

export interface GroupRewardOptions extends Pick<
  GrpoConfig,
  "numGenerations" | "scaleRewards" | "multiObjectiveAggregation"
> {
  /** Weight of each reward function; 1 by default. */
  readonly rewardWeights?: NumberArray;
}

/**
 * Computes advantages of groups of numGenerations consecutive samples: (r - group mean) / (std +
 * 1e-4), with the deviation of the group (Shao et al. 2024), of the batch, or none (Liu et al. 2025).
 * With "normalize_then_sum" each function's rewards are normalized within the group, weighted and
 * added, and the sums are normalized over the batch. `perFunction` is [samples][functions]; NaN marks
 * a missing reward.
 *
 * @throws INVALID_ARGUMENT when samples do not fill the groups.
 */
export function grpoAdvantages(
  perFunction: readonly NumberArray[],
  { numGenerations, scaleRewards, multiObjectiveAggregation, rewardWeights }: GroupRewardOptions,
): GroupAdvantages {
  const rewards = combineRewards(perFunction, rewardWeights);
  const groupStds = Float64Array.from(splitIntoGroups(rewards, numGenerations), nanStd);
  const advantages =
    multiObjectiveAggregation === "sum_then_normalize"
      ? normalizeRewardSums(rewards, numGenerations, scaleRewards)
      : normalizeAcrossBatch(combineRewards(normalizePerFunction(perFunction, numGenerations), rewardWeights));
  return { advantages, rewards, groupStds };
}

function normalizeRewardSums(
  rewards: Float64Array,
  groupSize: number,
  scaleRewards: GrpoConfig["scaleRewards"],
): Float64Array {
  const samples = Array.from(rewards, (reward, i) => ({ returns: [reward], group: Math.floor(i / groupSize) }));
  const config = { grouping: "start", baseline: "group", returns: "episode-return", scaleRewards } as const;
  return Float64Array.from(groupRelativeAdvantages(samples, config), ([advantage]) => advantage);
}

/** Normalizes each function's rewards within their group. */
function normalizePerFunction(perFunction: readonly NumberArray[], numGenerations: number): number[][] {
  return splitIntoGroups(perFunction, numGenerations).flatMap((group) => {
    const columns = Array.from(group[0], (_, f) => group.map((rewards) => rewards[f]));
    const scaled = columns.map((column) => {
      const center = nanMean(column);
      const scale = nanStd(column) + STD_EPSILON;
      // A single reward in a group has no baseline: 0.
      const hasNoPeers = Number.isNaN(scale);
      return column.map((reward) => (hasNoPeers && !Number.isNaN(reward) ? 0 : (reward - center) / scale));
    });
    return group.map((_, sample) => scaled.map((column) => column[sample]));
  });
}

function normalizeAcrossBatch(scores: Float64Array): Float64Array {
  const center = nanMean(scores);
  const scale = nanStd(scores) + STD_EPSILON;
  return scores.map((score) => (Number.isNaN(score) ? 0 : (score - center) / scale));
}
