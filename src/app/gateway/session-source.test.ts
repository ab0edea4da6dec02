import { describe, expect, it } from "vitest";
import type { Turn } from "../../rl/rollout/trajectory.js";
import type { SessionRecord } from "./session.js";
import { QueueSource } from "./session-source.js";

function createRecord(total: number, numTokens = 10): SessionRecord {
  const turn = { prompt: Array.from({ length: numTokens }, () => 1), tokens: [] } as unknown as Turn;
  return {
    trajectory: { turns: [turn], end: "terminated", bootstrapPrompt: undefined },
    summary: { return: total, turns: 1, end: "terminated" },
    segments: 1,
    updatesAtTurns: [0],
  };
}

/** Lets the source take what was added. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

const group = (size: number) => Array.from({ length: size }, () => ({ group: 0 }));

describe("QueueSource", () => {
  it("says once why no group forms, and takes the group that forms later", async () => {
    const warnings: string[] = [];
    const source = new QueueSource((message) => warnings.push(message));
    const collected = source.collectEpisodes(group(4));
    for (let task = 0; task < 40; task++) {
      source.add({ task: `task ${task}` }, createRecord(task));
      await settle();
    }
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(
      /^20 sessions of 20 tasks have ended, but no task has the 4 sessions of a group \(numGen/,
    );
    for (let i = 0; i < 3; i++) source.add({ task: "task 7" }, createRecord(100 + i));
    const { finishedEpisodes } = await collected;
    expect(finishedEpisodes.map((episode) => episode.return)).toEqual([7, 100, 101, 102]);
  });

  it("warns of no missing group where sessions need none", async () => {
    const warnings: string[] = [];
    const source = new QueueSource((message) => warnings.push(message));
    const collected = source.collectEpisodes(Array.from({ length: 30 }, () => ({})));
    for (let task = 0; task < 30; task++) source.add({ task: `task ${task}` }, createRecord(task));
    expect((await collected).records).toHaveLength(30);
    expect(warnings).toEqual([]);
  });

  it.each([
    ["sessions", { sessions: 50, tokens: Infinity }],
    ["tokens", { sessions: Infinity, tokens: 500 }],
  ])("drops the oldest beyond the limit of %s, counts them and says so", async (_, limits) => {
    const warnings: string[] = [];
    const source = new QueueSource((message) => warnings.push(message), limits);
    for (let task = 0; task < 150; task++) source.add({ task: `task ${task % 75}` }, createRecord(task));
    expect(source.droppedSessions).toBe(100);
    expect(warnings.map((message) => message.split(" were dropped untrained")[0])).toEqual([
      "1 ended sessions",
      "10 ended sessions",
      "100 ended sessions",
    ]);
    const { finishedEpisodes } = await source.collectEpisodes(Array.from({ length: 50 }, () => ({})));
    expect(finishedEpisodes.map((episode) => episode.return)).toEqual(Array.from({ length: 50 }, (__, i) => 100 + i));
  });
});
