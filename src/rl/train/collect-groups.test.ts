import type { EpisodeSpec } from "../rollout/rollout-slot.js";
import { describe, expect, it } from "vitest";
import { makeTurn } from "../../../test/support/turns.js";
import type { GroupSpec } from "../algorithms/learner.js";
import type { Rollout } from "../rollout/rollout-collector.js";
import { collectGroups } from "./collect-groups.js";

/**
 * Plays each episode at once: its reward is what `rewardOf` says of its seed and its place in the
 * group.
 */
function collectorOf(rewardOf: (seed: number, index: number) => number, turns = 1) {
  const played: EpisodeSpec[] = [];
  return {
    played,
    collectEpisodes: async (tasks: readonly EpisodeSpec[]): Promise<Rollout> => {
      const trajectories = tasks.map((task) => {
        const index = played.filter(({ group }) => group === task.group).length;
        played.push(task);
        const reward = rewardOf(task.seed!, index);
        const own = Array.from({ length: turns }, () => makeTurn({ reward }));
        return { turns: own, end: "terminated" as const, bootstrapPrompt: undefined, group: task.group };
      });
      return {
        trajectories,
        finishedEpisodes: trajectories.map(() => ({ return: 0, turns, end: "terminated" as const })),
      };
    },
  };
}

const spec: GroupSpec = {
  kind: "groups",
  groups: 3,
  groupSize: 2,
  minTurns: 0,
  maxResamples: 0,
  hasSignal: (group) => new Set(group.map(({ turns }) => turns[0].reward)).size > 1,
};

const seeds = () => {
  let seed = 0;
  return () => seed++;
};

describe("collectGroups", () => {
  it("starts the episodes of a group from the same seed, and each group from another", async () => {
    const collector = collectorOf(() => 0);
    const { trajectories } = await collectGroups(collector, spec, { nextSeed: seeds() });
    expect(collector.played).toEqual([0, 0, 1, 1, 2, 2].map((i) => ({ group: i, seed: i })));
    expect(trajectories).toHaveLength(6);
  });

  it("starts no group after maxEpisodes, be it the first, another for minTurns or a resampled one", async () => {
    const countEpisodes = async (more: Partial<GroupSpec>, maxEpisodes: number) => {
      const collector = collectorOf(() => 0);
      await collectGroups(collector, { ...spec, ...more }, { nextSeed: seeds(), maxEpisodes });
      return collector.played.length;
    };
    expect(await countEpisodes({}, 3)).toBe(4);
    expect(await countEpisodes({ minTurns: 100 }, 9)).toBe(10);
    expect(await countEpisodes({ maxResamples: 9 }, 8)).toBe(8);
  });

  it("resamples groups without a learning signal up to maxResamples times", async () => {
    // Groups with odd seeds teach nothing.
    const collector = collectorOf((seed, place) => (seed % 2 === 0 ? place : 0));
    const once = await collectGroups(collector, { ...spec, maxResamples: 1 }, { nextSeed: seeds() });
    // Of 0, 1, 2 one is missing; 3 in its place teaches nothing either.
    expect(once.trajectories.map(({ group }) => group)).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    const twice = await collectGroups(
      collectorOf((seed, place) => (seed % 2 === 0 ? place : 0)),
      { ...spec, maxResamples: 5 },
      { nextSeed: seeds() },
    );
    expect(twice.trajectories).toHaveLength(10);
    const never = await collectGroups(
      collectorOf(() => 0),
      { ...spec, maxResamples: 2 },
      { nextSeed: seeds() },
    );
    expect(never.trajectories).toHaveLength(18);
  });

  it("collects further groups until there are enough turns, and reports progress", async () => {
    const rounds: number[] = [];
    const collector = collectorOf(() => 0, 4);
    const fake = {
      collectEpisodes: async (
        specs: readonly EpisodeSpec[],
        { onProgress }: { onProgress?: (turns: number, ended: readonly never[]) => void } = {},
      ) => {
        onProgress?.(1, []);
        return collector.collectEpisodes(specs);
      },
    };
    const { trajectories } = await collectGroups(
      fake,
      { ...spec, minTurns: 50 },
      { nextSeed: seeds(), onProgress: (turns) => void rounds.push(turns) },
    );
    expect(trajectories).toHaveLength(18);
    expect(rounds).toEqual([1, 25, 49]);
  });
});
