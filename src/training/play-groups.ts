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
 * Groups of episodes that start alike, as many as the wish says, and as many again until there are enough turns. In place of groups
 * that teach nothing others are played, as often as the wish allows; all that was played is given.
 */
export async function playGroups(
  collector: Pick<Collector, "episodes">,
  wish: GroupWish,
  { newSeed, onRound = () => {} }: GroupPlayOptions,
): Promise<Experience> {
  const player = new GroupPlayer(collector, wish.groupSize, newSeed, onRound);
  let teaching = 0;
  let wanted = 0;
  do {
    wanted += wish.groups;
    teaching += countTeaching(await player.play(wish.groups), wish);
  } while (player.turns < wish.minTurns);
  for (let refill = 0; refill < wish.refills && teaching < wanted; refill++)
    teaching += countTeaching(await player.play(wanted - teaching), wish);
  return player;
}

class GroupPlayer implements Experience {
  readonly segments: Segment[] = [];
  readonly episodes: EpisodeSummary[] = [];
  turns = 0;
  private groups = 0;

  constructor(
    private readonly collector: Pick<Collector, "episodes">,
    private readonly groupSize: number,
    private readonly newSeed: () => number,
    private readonly onRound: Required<GroupPlayOptions>["onRound"],
  ) {}

  /** More groups; gives their segments. */
  async play(count: number): Promise<readonly Segment[]> {
    const tasks = Array.from({ length: count }, (): EpisodeTask => ({ group: this.groups++, seed: this.newSeed() }));
    const before = this.turns;
    const { segments, episodes } = await this.collector.episodes(
      tasks.flatMap((task) => Array.from({ length: this.groupSize }, () => task)),
      { onRound: (turns, ended) => this.onRound(before + turns, ended) },
    );
    this.turns += segments.reduce((sum, { turns }) => sum + turns.length, 0);
    this.segments.push(...segments);
    this.episodes.push(...episodes);
    return segments;
  }
}

/** How many groups teach something; all of them count where it does not matter. */
function countTeaching(segments: readonly Segment[], { groupSize, refills, teaches }: GroupWish): number {
  let count = 0;
  for (let start = 0; start < segments.length; start += groupSize)
    if (refills === 0 || teaches(segments.slice(start, start + groupSize))) count++;
  return count;
}
