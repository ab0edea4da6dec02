import { nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import type { GrpoConfig } from "./settings.js";

/** An episode, or a single reply, whose credits are compared with those of others. */
export interface EpisodeReturns {
  /** Credit of each turn; NaN where it is not known. */
  readonly returns: NumberArray;
  /** Episodes that started alike have the same. */
  readonly group: number;
  /** What each turn answered; turns that answered the same have the same. Needed with grouping "observation". */
  readonly states?: readonly string[];
}

export type GroupBaselineConfig = Pick<GrpoConfig, "grouping" | "baseline" | "scaleRewards"> & {
  /** With "episode-return" an episode counts once, however many turns it has. */
  readonly returns: GrpoConfig["returns"];
};

/** The credits that a turn's credit is compared with. */
interface BaselineGroup {
  readonly mean: number;
  readonly std: number;
}

/**
 * Advantages of turns: (credit - mean) / (std + 1e-4), the mean that of the peers that `grouping` and `baseline` name, the deviation
 * (n - 1) theirs, the batch's, or none. A turn without peers gets 0, and so does one whose credit is NaN. Gives [turns] for each
 * episode. With one turn an episode and groups that start alike this is Shao et al. 2024's group-relative advantage.
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

/** Names, for each turn, those that it is compared with. */
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
