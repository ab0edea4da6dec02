import { combineRewards, splitIntoGroups } from "../shared/combine-rewards.js";
import { nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import { groupRelativeAdvantages } from "./group-relative-advantages.js";
import type { GrpoConfig } from "./settings.js";

export interface GroupAdvantages {
  /** [samples]; 0 for a sample that could not be scored. */
  readonly advantages: Float64Array;
  /** Reward of each sample, all functions together; NaN for one that could not be scored. */
  readonly rewards: Float64Array;
  /** Standard deviation (n - 1) of each group's rewards. A group where it is 0 teaches nothing. */
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
 * Advantages of groups of numGenerations consecutive samples: (r - group mean) / (std + 1e-4), the deviation that of the group
 * (Shao et al. 2024), of the batch, or none (Liu et al. 2025). With "normalize_then_sum" every function's rewards are normalized
 * within the group before they are weighted and added, and the sums over the batch. `perFunction` is [samples][functions]; NaN
 * is a reward that a function could not give. Throws INVALID_ARGUMENT when samples do not fill the groups.
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

/** Every function's rewards, normalized within their group. */
function normalizePerFunction(perFunction: readonly NumberArray[], numGenerations: number): number[][] {
  return splitIntoGroups(perFunction, numGenerations).flatMap((group) => {
    const columns = Array.from(group[0], (_, f) => group.map((rewards) => rewards[f]));
    const scaled = columns.map((column) => {
      const center = nanMean(column);
      const scale = nanStd(column) + STD_EPSILON;
      // A reward that has no other to be compared with says nothing: 0.
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
