import { describe, expect, it } from "vitest";
import { testTurn } from "../../test/support/turns.js";
import type { GroupWish } from "../algorithms/learner.js";
import type { EpisodeTask, Experience } from "../rollout/collector.js";
import { playGroups } from "./play-groups.js";

/** Plays each episode at once: its reward is what `rewardOf` says of its seed and its place in the group. */
function collectorOf(rewardOf: (seed: number, place: number) => number, turns = 1) {
  const played: EpisodeTask[] = [];
  return {
    played,
    episodes: async (tasks: readonly EpisodeTask[]): Promise<Experience> => {
      const segments = tasks.map((task) => {
        const place = played.filter(({ group }) => group === task.group).length;
        played.push(task);
        const reward = rewardOf(task.seed!, place);
        const own = Array.from({ length: turns }, () => testTurn({ reward }));
        return { turns: own, end: "terminated" as const, nextPrompt: undefined, group: task.group };
      });
      return { segments, episodes: segments.map(() => ({ return: 0, turns, end: "terminated" as const })) };
    },
  };
}

const wish: GroupWish = {
  kind: "groups",
  groups: 3,
  groupSize: 2,
  minTurns: 0,
  refills: 0,
  teaches: (group) => new Set(group.map(({ turns }) => turns[0].reward)).size > 1,
};

const seeds = () => {
  let seed = 0;
  return () => seed++;
};

describe("playGroups", () => {
  it("starts the episodes of a group alike, and each group otherwise", async () => {
    const collector = collectorOf(() => 0);
    const { segments } = await playGroups(collector, wish, { newSeed: seeds() });
    expect(collector.played).toEqual([0, 0, 1, 1, 2, 2].map((i) => ({ group: i, seed: i })));
    expect(segments).toHaveLength(6);
  });

  it("plays others in place of groups that teach nothing, as often as it may", async () => {
    // Groups with odd seeds teach nothing.
    const collector = collectorOf((seed, place) => (seed % 2 === 0 ? place : 0));
    const once = await playGroups(collector, { ...wish, refills: 1 }, { newSeed: seeds() });
    // Of 0, 1, 2 one is missing; 3 in its place teaches nothing either.
    expect(once.segments.map(({ group }) => group)).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    const twice = await playGroups(
      collectorOf((seed, place) => (seed % 2 === 0 ? place : 0)),
      { ...wish, refills: 5 },
      { newSeed: seeds() },
    );
    expect(twice.segments).toHaveLength(10);
    const never = await playGroups(
      collectorOf(() => 0),
      { ...wish, refills: 2 },
      { newSeed: seeds() },
    );
    expect(never.segments).toHaveLength(18);
  });

  it("plays as many again until there are enough turns, and tells how far it is", async () => {
    const rounds: number[] = [];
    const collector = collectorOf(() => 0, 4);
    const told = {
      episodes: async (
        tasks: readonly EpisodeTask[],
        { onRound }: { onRound?: (turns: number, ended: readonly never[]) => void } = {},
      ) => {
        onRound?.(1, []);
        return collector.episodes(tasks);
      },
    };
    const { segments } = await playGroups(
      told,
      { ...wish, minTurns: 50 },
      { newSeed: seeds(), onRound: (turns) => void rounds.push(turns) },
    );
    expect(segments).toHaveLength(18);
    expect(rounds).toEqual([1, 25, 49]);
  });
});
