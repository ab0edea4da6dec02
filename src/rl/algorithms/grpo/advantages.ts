import { combineRewards, splitIntoGroups } from "../shared/combine-rewards.js";
import { turnReturns } from "../shared/returns.js";
import { nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import type { ScoredTrajectory } from "../algorithm-definition.js";
import { groupRelativeAdvantages } from "./group-relative-advantages.js";
import type { GrpoConfig } from "./settings.js";

type AdvantageConfig = Pick<
  GrpoConfig,
  | "numGenerations"
  | "grouping"
  | "baseline"
  | "scaleRewards"
  | "multiObjectiveAggregation"
  | "rewardWeights"
  | "returns"
  | "gamma"
  | "rewardSignal"
>;

/**
 * Computes the advantage of each turn relative to its group (Shao et al. 2024), repeated for its
 * decisions. With "normalize_then_sum", rewards of several functions are normalized within the
 * group, weighted and added, and the sums are normalized over the batch. NaN marks a missing
 * reward; completions without any have the advantage 0.
 */
export function grpoAdvantages(trajectories: readonly ScoredTrajectory[], config: AdvantageConfig): NumberArray[][] {
  const advantages = advantagesPerTurn(trajectories, config);
  return trajectories.map(({ turns }, i) =>
    turns.map(({ oldLogProbs }, turn) => new Float64Array(oldLogProbs.length).fill(advantages[i][turn])),
  );
}

function advantagesPerTurn(trajectories: readonly ScoredTrajectory[], config: AdvantageConfig): readonly NumberArray[] {
  const rewards = trajectories.map((trajectory) => trajectory.rewardsPerFunction);
  if (config.multiObjectiveAggregation === "normalize_then_sum" && rewards.every((row) => row !== undefined)) {
    const sums = combineRewards(normalizePerFunction(rewards, config.numGenerations), config.rewardWeights);
    return standardScores(sums).map((score) => [Number.isNaN(score) ? 0 : score]);
  }
  const episodeReturns = trajectories.map(({ turns, group }) => ({
    group,
    returns: turnReturns(
      turns.map(({ turn }) => turn.reward),
      config,
    ),
    states: config.grouping === "observation" ? turns.map(({ turn }) => turn.prompt.join()) : undefined,
  }));
  return groupRelativeAdvantages(episodeReturns, config);
}

/** Normalizes each function's rewards, [samples][functions], within their group. */
function normalizePerFunction(perFunction: readonly NumberArray[], numGenerations: number): number[][] {
  return splitIntoGroups(perFunction, numGenerations).flatMap((group) => {
    const columns = Array.from(group[0], (_, f) => group.map((rewards) => rewards[f]));
    const scaled = columns.map(standardScores);
    return group.map((_, sample) => scaled.map((column) => column[sample]));
  });
}

/** Returns (x - mean) / (std + 1e-4): NaN for NaN, and 0 for a number without others. */
function standardScores(values: NumberArray): number[] {
  const center = nanMean(values);
  const scale = nanStd(values) + STD_EPSILON;
  return Array.from(values, (value) => {
    if (Number.isNaN(value)) return value;
    return Number.isNaN(scale) ? 0 : (value - center) / scale;
  });
}
