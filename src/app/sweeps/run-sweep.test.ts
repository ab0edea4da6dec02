import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { readJson } from "../../core/files/json-file.js";
import { readMetrics, type MetricRecord } from "../../rl/tracking/index.js";
import { evaluate } from "../../rl/train/evaluate.js";
import { resumeRun, startRun } from "../runs/run.js";
import type { SweepOptions } from "./sweep-settings.js";
import { runSweep, type SweepRun, type SweepCallbacks } from "./run-sweep.js";

let folder: string;
let model: string;
let removeModel: () => Promise<void>;
beforeAll(async () => {
  ({ folder: model, remove: removeModel } = await writeRandomModel({ maxPositions: 256, scale: 0.2 }));
  folder = await mkdtemp(join(tmpdir(), "sweep-"));
});
afterAll(async () => {
  await removeModel();
  await rm(folder, { recursive: true });
});

const env = "Blackjack-v1";
/** Six updates of eight turns. */
const fixed = () =>
  ({
    model,
    device: "cpu",
    threads: 1,
    actionMode: "choices",
    turns: 48,
    numEnvs: 4,
    batchSize: 8,
    numPpoEpochs: 1,
    r: 2,
    initKlCoef: 0.2,
    saveSteps: 2,
    tensorboard: false,
    lrSchedulerType: "linear",
  }) as const;
const rates = { learningRate: [0.001, 0.01, 0.1] };
const halving = (): SweepOptions => ({
  env,
  train: fixed(),
  search: rates,
  method: "halving",
  trials: 3,
  metric: "objective/kl",
  goal: "minimize",
});

const path = (name: string) => join(folder, name);
const text = (name: string) => readFile(path(name), "utf8");
const TIMES = /^time\/|_time$|per_second$/;

async function metricsOf(run: string): Promise<MetricRecord[]> {
  const records = await readMetrics(join(run, "metrics.jsonl"));
  return records.map((record) => Object.fromEntries(Object.entries(record).filter(([name]) => !TIMES.test(name))));
}

/** Runs a sweep and records its stages and messages. */
async function sweep(options: SweepOptions, name: string, watch: SweepCallbacks = {}) {
  const stages: string[] = [];
  const messages: string[] = [];
  const label = ({ trial, seed, rung }: SweepRun) => `${trial}/${seed}/${rung}`;
  const result = await runSweep(options, path(name), {
    onRunStart: (stage) => stages.push(label(stage)),
    onFailure: (reason, stage) => messages.push(`${label(stage)} ${reason}`),
    onWarning: (message) => messages.push(message),
    ...watch,
  });
  return { result, stages, messages };
}

describe("successive halving", () => {
  let whole: Awaited<ReturnType<typeof sweep>>;
  let best: number;
  let settings: object;
  beforeAll(async () => {
    whole = await sweep(halving(), "whole");
    ({ trial: best, settings } = whole.result.best!);
  });

  it("trains all trials for a fraction of their runs, and the best to the end", async () => {
    expect(whole.stages).toEqual(["1/1/1", "2/1/1", "3/1/1", `${best}/1/2`]);
    expect(whole.messages).toEqual([]);
    const { trials } = await readJson(path("whole/results.json"));
    const runs = (
      trials as unknown as { trial: number; runs: { rungResults: { rung: number; turns: number }[] }[] }[]
    ).map(({ trial, runs: [{ rungResults }] }) => [trial, rungResults.map(({ turns }) => turns)]);
    const others = [1, 2, 3].filter((trial) => trial !== best);
    expect(runs[0]).toEqual([best, [16, 48]]);
    expect(runs.slice(1)).toEqual(expect.arrayContaining(others.map((trial) => [trial, [16]])));
    const divergences = await Promise.all(
      [1, 2, 3].map(async (trial) => (await metricsOf(path(`whole/runs/trial-0${trial}-seed-1`)))[1]["objective/kl"]),
    );
    expect(divergences[best - 1]).toBe(Math.min(...divergences));
  });

  it("trains the best trial as without a sweep: rungs are pauses, and schedules follow the whole length", async () => {
    const plain = await startRun({ ...fixed(), env, seed: 1, ...settings }, path("plain"));
    await plain.train();
    await plain.saveModel();
    await plain.close();
    const own = path(`whole/runs/trial-0${best}-seed-1`);
    expect(await metricsOf(own)).toEqual(await metricsOf(path("plain")));
    const adapter = "adapter/adapter_model.safetensors";
    expect(await readFile(join(own, adapter))).toEqual(await readFile(path(`plain/${adapter}`)));
  });

  it("leaves the other runs resumable", async () => {
    const other = [1, 2, 3].find((trial) => trial !== best)!;
    const run = await resumeRun(path(`whole/runs/trial-0${other}-seed-1`));
    const { state } = await run.train();
    await run.close();
    expect(run.resumedAt).toBe(2);
    expect(state.turns).toBe(48);
  });

  it(
    "resumes after an interruption with the same result, without repeating finished runs",
    { timeout: 180_000 },
    async () => {
      // During the first run, between two runs, during the last.
      for (const [at, before] of [
        [1, 1],
        [4, 2],
        [7, 4],
      ]) {
        const name = `stopped-${at}`;
        const stop = new AbortController();
        let updates = 0;
        const onProgress: SweepCallbacks["onProgress"] = ({ metrics, state }) => {
          if (metrics.num_turns === state.turns && ++updates === at) stop.abort();
        };
        const first = await sweep(halving(), name, { signal: stop.signal, onProgress });
        expect([first.result.isInterrupted, first.stages.length]).toEqual([true, before]);
        expect(await readdir(path(name))).not.toContain("trials.svg");
        const rest = await sweep(halving(), name);
        expect(rest.result.isInterrupted).toBe(false);
        // The interrupted run is counted twice.
        expect(rest.stages).toHaveLength(4 - before + 1);
        for (const file of ["results.json", "trials.svg", "best.json"])
          expect(await text(`${name}/${file}`)).toBe(await text(`whole/${file}`));
        expect(await metricsOf(path(`${name}/runs/trial-0${best}-seed-1`))).toEqual(
          await metricsOf(path(`whole/runs/trial-0${best}-seed-1`)),
        );
      }
    },
  );

  it("returns its results again when it is complete", async () => {
    const again = await sweep(halving(), "whole");
    expect([again.stages, again.result.best!.trial]).toEqual([[], best]);
  });

  it("refuses results without a number, instead of ranking them as 0", async () => {
    const results = await text("whole/results.json");
    await writeFile(path("whole/results.json"), results.replace(/"value": [^,]+,(?=\s*"updates")/, '"value": null,'));
    await expect(sweep(halving(), "whole")).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringMatching(/results\.json is damaged: trials\[.*\.value: expected number/) as string,
    });
    await writeFile(path("whole/results.json"), results);
  });

  it("rejects another sweep in its folder", async () => {
    const before = await text("whole/results.json");
    for (const [other, message] of [
      [{ ...halving(), searchSeed: 4 }, "contains another sweep: its searchSeed is 0, not 4"],
      [{ ...halving(), goal: "maximize" }, 'its goal is "minimize", not "maximize"'],
      [{ ...halving(), train: { ...fixed(), turns: 80 } }, "its train is"],
    ] as const)
      await expect(runSweep(other, path("whole"))).rejects.toMatchObject({
        code: "INVALID_STATE",
        message: expect.stringContaining(message) as string,
      });
    expect(await text("whole/results.json")).toBe(before);
    await expect(runSweep(halving(), path("plain"))).rejects.toThrow("plain contains a run");
  });

  it("warns if all trials are equal", async () => {
    const short = { ...halving(), metric: "rollout/ep_rew_mean", train: { ...fixed(), turns: 16 } };
    const { messages } = await sweep(short, "alike");
    expect(messages).toEqual([expect.stringContaining("All trials are equal at the end of rung 1")]);
  });
});

describe("a grid", () => {
  it("records failed trials with their reasons, and compares the others over seeds", async () => {
    const sizes = { miniBatchSize: [4, 16], learningRate: [0.01, 1e30] };
    const options: SweepOptions = {
      env,
      train: { ...fixed(), turns: 80 },
      search: sizes,
      method: "grid",
      seeds: [3, 5],
    };
    const { result, stages, messages } = await sweep(options, "failing");
    const [first, ...others] = result.trials;
    expect(stages).toEqual(["1/3/1", "1/5/1", "2/3/1"]);
    expect(messages.at(-1)).toMatch(/^2\/3\/1 /);
    expect(first).toMatchObject({ trial: 1, rung: 1, settings: { miniBatchSize: 4, learningRate: 0.01 } });
    const lasts = await Promise.all(
      [3, 5].map(async (seed) => (await metricsOf(path(`failing/runs/trial-01-seed-${seed}`))).at(-1)!),
    );
    const [a, b] = lasts.map((record) => record["rollout/ep_rew_mean"]);
    expect(first.value).toBeCloseTo((a + b) / 2, 12);
    expect(first.standardError).toBeCloseTo(Math.abs(a - b) / 2, 12);
    expect(others.map(({ trial }) => trial)).toEqual([2, 3, 4]);
    for (const { trial, failure } of others)
      expect(failure).toMatch(trial === 2 ? /^seed 3: / : /a batch has only 8 samples/);
    // What failed is not tried again.
    expect((await sweep(options, "failing")).stages).toEqual([]);
  });

  it("compares by evaluation on the same episodes", async () => {
    const train = { ...fixed(), turns: 8 };
    const options: SweepOptions = {
      env,
      train,
      search: { learningRate: [0.01] },
      method: "grid",
      metric: "eval/mean_return",
      evalEpisodes: 30,
      evalSeed: 4,
    };
    const { result } = await sweep(options, "greedy");
    const run = await startRun({ ...train, env, seed: 1, learningRate: 0.01 }, path("greedy-plain"));
    await run.train();
    const { meanReturn } = await evaluate(run.agent, run.makeEnv, { episodes: 30, seed: 4 });
    await run.close();
    expect(result.best!.value).toBe(meanReturn);
  });
});

describe("runSweep", () => {
  const grid = (): SweepOptions => ({ env, train: fixed(), search: rates, method: "grid" });

  it("suggests the nearest metric after the first update", async () => {
    const options = { ...grid(), metric: "rollout/ep_reward_mean" };
    await expect(sweep(options, "metric")).rejects.toThrow(
      'record no "rollout/ep_reward_mean" to compare trials by. Did you mean rollout/ep_rew_mean?',
    );
    expect(await metricsOf(path("metric/runs/trial-01-seed-1"))).toHaveLength(1);
    // Nothing was compared yet, so the run continues under the right name.
    const { stages } = await sweep({ ...grid(), goal: "minimize" }, "metric");
    expect(stages).toHaveLength(3);
    expect(await metricsOf(path("metric/runs/trial-01-seed-1"))).toHaveLength(6);
  });

  it("reports invalid settings before writing anything, and failures to open the first run", async () => {
    await expect(sweep({ ...grid(), env: "Blackjak-v1" }, "wrong")).rejects.toMatchObject({ code: "ENV_UNKNOWN" });
    await expect(sweep({ ...grid(), search: { learningRat: [1] } }, "wrong")).rejects.toThrow(
      "Did you mean learningRate?",
    );
    await expect(readdir(path("wrong"))).rejects.toThrow("ENOENT");
    const nowhere = { ...grid(), train: { ...fixed(), model: path("nowhere") } };
    await expect(sweep(nowhere, "later")).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    // No run was begun, so the sweep there may still become another.
    const { result } = await sweep({ ...grid(), train: { ...fixed(), turns: 8 } }, "later");
    expect(result.trials).toHaveLength(3);
  });

  it("compares warm starts alone", async () => {
    const train = { ...fixed(), turns: 0, sftWarmStart: "3", maxEpisodeSteps: 5, sftBatchSize: 4 };
    const options = { env: "FrozenLake-v1", train, search: { sftSteps: [1, 2] }, evalEpisodes: 4 };
    const { result, messages } = await sweep({ ...options, method: "grid", metric: "eval/mean_return" }, "warm-starts");
    expect(messages).toEqual([]);
    expect(result.trials.map(({ runs: [{ rungResults }] }) => rungResults.at(-1)?.turns)).toEqual([0, 0]);
  });

  it("does not mix its runs with others", async () => {
    await sweep({ ...grid(), train: { ...fixed(), turns: 8 } }, "lost");
    await rm(path("lost/sweep.json"));
    await expect(sweep(grid(), "lost")).rejects.toThrow("contains other runs");
    await writeFile(path("lost/sweep.json"), '{"version": 99}');
    await expect(sweep(grid(), "lost")).rejects.toMatchObject({ code: "RUN_INCOMPATIBLE" });
  });
});
