import type { GroupWish } from "../algorithms/learner.js";
import type { Collector, EpisodeTask, Experience } from "../rollout/collector.js";
import type { EpisodeSummary, Segment } from "../rollout/turn.js";

/** What groups are played with. */
export interface GroupPlayOptions {
  /** Starts the environments of the next group. */
  readonly newSeed: () => number;
  /** Called after each round with the turns played so far and the episodes that ended in it. */
  readonly onRound?: (turns: number, ended: readonly EpisodeSummary[]) => void;
}

/**
 * Groups of episodes that start alike. In place of groups that teach nothing others are played, as often as the wish allows; all
 * that was played is given.
 */
export async function playGroups(
  collector: Pick<Collector, "episodes">,
  { groups, groupSize, refills, teaches }: GroupWish,
  { newSeed, onRound = () => {} }: GroupPlayOptions,
): Promise<Experience> {
  const segments: Segment[] = [];
  const episodes: EpisodeSummary[] = [];
  let turns = 0;
  let number = 0;
  for (let round = 0, missing = groups; missing > 0 && round <= refills; round++) {
    const tasks = Array.from({ length: missing }, (): EpisodeTask => ({ group: number++, seed: newSeed() }));
    const before = turns;
    const played = await collector.episodes(
      tasks.flatMap((task) => Array.from({ length: groupSize }, () => task)),
      { onRound: (own, ended) => onRound((turns = before + own), ended) },
    );
    segments.push(...played.segments);
    episodes.push(...played.episodes);
    // Without refills nobody needs to know.
    if (round < refills) missing -= countTeaching(played.segments, groupSize, teaches);
  }
  return { segments, episodes };
}

function countTeaching(segments: readonly Segment[], groupSize: number, teaches: GroupWish["teaches"]): number {
  let count = 0;
  for (let start = 0; start < segments.length; start += groupSize)
    if (teaches(segments.slice(start, start + groupSize))) count++;
  return count;
}
