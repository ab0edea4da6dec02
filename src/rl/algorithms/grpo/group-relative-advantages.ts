import { nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import type { GrpoConfig } from "./settings.js";

/** Returns of an episode, or of a single completion. */
export interface EpisodeReturns {
  /** Return of each turn; NaN if unknown. */
  readonly returns: NumberArray;
  /** Equal for episodes that started alike. */
  readonly group: number;
  /** Keys of the turns' prompts. Required with grouping "observation". */
  readonly states?: readonly string[];
}

export type GroupBaselineConfig = Pick<GrpoConfig, "grouping" | "baseline" | "scaleRewards"> & {
  /** With "episode-return" an episode counts once, regardless of its number of turns. */
  readonly returns: GrpoConfig["returns"];
};

/** Statistics of the returns that a turn is compared with. */
interface BaselineGroup {
  readonly mean: number;
  readonly std: number;
}

/**
 * Computes advantages of turns, [turns] per episode: (return - mean) / (std + 1e-4), with the mean
 * of the turns selected by `grouping` and `baseline`, and their deviation (n - 1), that of the
 * batch, or none. Turns without others to compare with, and turns with an unknown return, get 0.
 * With one turn per episode and groups that start alike this is the group-relative advantage of
 * Shao et al. 2024.
 */
export function groupRelativeAdvantages(
  episodes: readonly EpisodeReturns[],
  config: GroupBaselineConfig,
): Float64Array[] {
  const keys = episodes.map((episode) => baselineGroupKeys(episode, config));
  const groups = collectBaselineGroups(episodes, keys, config);
  const batchStd = nanStd(episodes.flatMap(({ returns }) => normalizedReturns(returns, config)));
  return episodes.map(({ returns }, i) =>
    Float64Array.from(returns, (value, turn) => {
      const { mean, std } = groups.get(keys[i][turn])!;
      const centered = config.baseline === "none" ? value : value - mean;
      const scale = { group: std + STD_EPSILON, batch: batchStd + STD_EPSILON, none: 1 }[config.scaleRewards];
      const advantage = centered / scale;
      return Number.isNaN(advantage) ? 0 : advantage;
    }),
  );
}

/** Returns, for each turn, the key of the turns it is compared with. */
function baselineGroupKeys(
  { returns, group, states = [] }: EpisodeReturns,
  { grouping, baseline }: GroupBaselineConfig,
): string[] {
  return Array.from(returns, (_, turn) => {
    if (grouping === "observation") return states[turn];
    if (baseline === "batch") return "";
    const groupKey = grouping === "batch" ? "" : `${group}`;
    return baseline === "step" ? `${groupKey}/${turn}` : groupKey;
  });
}

function collectBaselineGroups(
  episodes: readonly EpisodeReturns[],
  keys: readonly (readonly string[])[],
  { returns }: GroupBaselineConfig,
): Map<string, BaselineGroup> {
  const returnsByKey = new Map<string, number[]>();
  episodes.forEach((episode, i) => {
    const seen = new Set<string>();
    keys[i].forEach((key, turn) => {
      if (returns === "episode-return" && seen.has(key)) return;
      seen.add(key);
      const collected = returnsByKey.get(key);
      if (collected === undefined) returnsByKey.set(key, [episode.returns[turn]]);
      else collected.push(episode.returns[turn]);
    });
  });
  return new Map(Array.from(returnsByKey, ([key, values]) => [key, { mean: nanMean(values), std: nanStd(values) }]));
}

function normalizedReturns(values: NumberArray, { returns }: GroupBaselineConfig): number[] {
  return returns === "episode-return" ? Array.from(values).slice(0, 1) : Array.from(values);
}
