import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { recordedEpisode, recordedTurn } from "../../../test/support/recorded-episode.js";
import { encodeChunk } from "../../rl/tracking/rollouts/chunk.js";
import { DashboardData } from "./dashboard-data.js";
import { readJobs } from "./read-jobs.js";
import { RunsFolder } from "./run-files.js";

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "truncated-"));
});
afterAll(async () => rm(root, { recursive: true }));

function writeRollouts(step: number): Promise<string> {
  const episode = recordedEpisode(step, recordedTurn({ observation: "é" }));
  return encodeChunk(step, { episodes: [episode], vocabulary: { texts: { 1: "é" }, special: [] } });
}

const FILES: Readonly<Record<string, () => Promise<string>>> = {
  "config.json": async () =>
    JSON.stringify({ version: 2, env: "Blackjack-v1", model: "é", algorithm: "grpo", seed: 1 }),
  "metrics.jsonl": async () => '{"step":1,"num_turns":8,"lösung":1}\n{"step":2,"num_turns":16,"lösung":null}\n',
  "log.jsonl": async () =>
    '{"time":1,"step":0,"kind":"start","message":"é"}\n{"time":2,"step":2,"kind":"end","message":"","outcome":"finished"}\n',
  "jobs.jsonl": async () =>
    '{"time":1,"worker":"é","outcome":"used","queued":0,"seconds":1,"version":0,"step":0,"pending":1}\n'.repeat(2),
  "notes.json": async () => JSON.stringify({ version: 1, tags: ["é"], note: "n" }),
  "rollouts.jsonl": async () => (await writeRollouts(1)) + (await writeRollouts(2)),
};

it.each(Object.keys(FILES))(
  "shows what is whole of a run whose %s ends at any byte",
  async (name) => {
    const runs = join(root, name);
    const folder = join(runs, "run");
    await mkdir(folder, { recursive: true });
    for (const [file, write] of Object.entries(FILES)) await writeFile(join(folder, file), await write());
    const path = join(folder, name);
    const whole = await readFile(path);
    for (let size = whole.length; size >= 0; size--) {
      await truncate(path, size);
      const lines = whole.subarray(0, size).toString("latin1").split("\n").length - 1;
      // Nothing is in its memory: each length is read as by a dashboard that was just started.
      const data = new DashboardData(await RunsFolder.open(runs));
      const listed = await data.list();
      const { log, metrics } = await data.detail("run");
      const { episodes } = await data.rollouts.list("run", {});
      const shown = {
        size,
        isWhole: listed.runs[0].problem === null,
        metrics: metrics.length,
        log: log.length,
        episodes: episodes.length,
        jobs: (await readJobs(data.runs, "run")).jobs.length,
      };
      expect(shown).toEqual({
        size,
        isWhole: name.endsWith("l") || size === whole.length,
        metrics: name === "metrics.jsonl" && lines === 0 ? 0 : 2,
        log: name === "log.jsonl" ? lines : 2,
        episodes: name === "rollouts.jsonl" ? lines : 2,
        jobs: name === "jobs.jsonl" ? lines : 2,
      });
      for (const episode of episodes)
        expect(await data.rollouts.episode("run", episode.id)).toMatchObject({ turns: [{ text: "x" }] });
      expect((await data.rollouts.groups("run")).groups.length).toBe(episodes.length > 0 ? 1 : 0);
    }
  },
  300_000,
);

it("lists a sweep whose sweep.json ends at any byte", async () => {
  const runs = join(root, "sweeps");
  const path = join(runs, "sweep", "sweep.json");
  const whole = JSON.stringify({ version: 1, search: { learningRate: [1, 2] } });
  await mkdir(join(runs, "sweep"), { recursive: true });
  for (let size = whole.length; size >= 0; size--) {
    await writeFile(path, whole.slice(0, size));
    const { sweeps } = await new DashboardData(await RunsFolder.open(runs)).list();
    const isWhole = size === whole.length;
    expect(sweeps.map(({ settings, problem }) => ({ size, settings, isWhole: problem === null }))).toEqual([
      { size, settings: isWhole ? ["learningRate"] : [], isWhole },
    ]);
  }
});
