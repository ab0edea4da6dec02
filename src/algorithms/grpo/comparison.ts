import { nanMean, nanStd, STD_EPSILON, type Numbers } from "../shared/statistics.js";
import type { GrpoConfig } from "./config.js";

/** An episode, or a single reply, whose credits are compared with those of others. */
export interface ComparedEpisode {
  /** Credit of each turn; NaN where it is not known. */
  readonly credits: Numbers;
  /** Episodes that started alike have the same. */
  readonly group: number;
  /** What each turn answered; turns that answered the same have the same. Needed with grouping "observation". */
  readonly states?: readonly string[];
}

export type ComparisonConfig = Pick<GrpoConfig, "grouping" | "baseline" | "scaleRewards"> & {
  /** With "episode-return" an episode counts once, however many turns it has. */
  readonly returns: GrpoConfig["returns"];
};

/** The credits that a turn's credit is compared with. */
interface Peers {
  readonly mean: number;
  readonly std: number;
}

/**
 * Advantages of turns: (credit - mean) / (std + 1e-4), the mean that of the peers that `grouping` and `baseline` name, the deviation
 * (n - 1) theirs, the batch's, or none. A turn without peers gets 0, and so does one whose credit is NaN. Gives [turns] for each
 * episode. With one turn an episode and groups that start alike this is Shao et al. 2024's group-relative advantage.
 */
export function compareCredits(episodes: readonly ComparedEpisode[], config: ComparisonConfig): Float64Array[] {
  const keys = episodes.map((episode) => peerKeys(episode, config));
  const peers = gatherPeers(episodes, keys, config);
  const batchStd = nanStd(episodes.flatMap(({ credits }) => countedCredits(credits, config)));
  return episodes.map(({ credits }, i) =>
    Float64Array.from(credits, (credit, turn) => {
      const { mean, std } = peers.get(keys[i][turn])!;
      const centred = config.baseline === "none" ? credit : credit - mean;
      const scale = { group: std + STD_EPSILON, batch: batchStd + STD_EPSILON, none: 1 }[config.scaleRewards];
      const advantage = centred / scale;
      return Number.isNaN(advantage) ? 0 : advantage;
    }),
  );
}

/** Names, for each turn, those that it is compared with. */
function peerKeys(
  { credits, group, states = [] }: ComparedEpisode,
  { grouping, baseline }: ComparisonConfig,
): string[] {
  return Array.from(credits, (_, turn) => {
    if (grouping === "observation") return states[turn];
    if (baseline === "batch") return "";
    const own = grouping === "batch" ? "" : `${group}`;
    return baseline === "step" ? `${own}/${turn}` : own;
  });
}

function gatherPeers(
  episodes: readonly ComparedEpisode[],
  keys: readonly (readonly string[])[],
  { returns }: ComparisonConfig,
): Map<string, Peers> {
  const credits = new Map<string, number[]>();
  episodes.forEach((episode, i) => {
    const seen = new Set<string>();
    keys[i].forEach((key, turn) => {
      if (returns === "episode-return" && seen.has(key)) return;
      seen.add(key);
      const own = credits.get(key);
      if (own === undefined) credits.set(key, [episode.credits[turn]]);
      else own.push(episode.credits[turn]);
    });
  });
  return new Map(Array.from(credits, ([key, values]) => [key, { mean: nanMean(values), std: nanStd(values) }]));
}

function countedCredits(credits: Numbers, { returns }: ComparisonConfig): number[] {
  return returns === "episode-return" ? Array.from(credits).slice(0, 1) : Array.from(credits);
}
