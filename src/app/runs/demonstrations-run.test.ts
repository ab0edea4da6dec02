import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ppo } from "../../rl/algorithms/index.js";
import { CountingEnv, EvenOddAgent } from "../../../test/support/counting.js";
import { TrainableModels, readTrainedValues } from "../../../test/support/trainable.js";
import type { Demonstration } from "../../rl/agent/index.js";
import type { Metrics } from "../../rl/algorithms/learner.js";
import { readMetrics } from "../../rl/tracking/index.js";
import { resumeRun, startRun } from "./run.js";
import { Trainer } from "../../rl/train/trainer.js";

const models = new TrainableModels();
let modelFolder: string;
let folder: string;
beforeAll(async () => {
  modelFolder = (await models.open({ maxPositions: 256, scale: 0.2 })).folder;
  folder = await mkdtemp(join(tmpdir(), "imitation-"));
});
afterAll(async () => {
  await models.close();
  await rm(folder, { recursive: true });
});

const demonstrations: Demonstration[] = Array.from({ length: 10 }, (_, number) => ({
  turns: [{ observationText: String(number), completion: number % 2 === 0 ? "even" : "odd" }],
}));

const TIMES = /^time\/|_time$|per_second$/;

/**
 * Trains on, from a checkpoint if there is one, up to so many updates; episodes of five turns never
 * end with an update.
 */
async function train(
  checkpoints: string,
  updates = 4,
  onUpdate: (trainer: Trainer, update: number) => void = () => {},
): Promise<{ readonly logs: readonly (readonly [number, Metrics])[]; readonly values: Float32Array }> {
  const model = await models.reopen(modelFolder);
  const agent = new EvenOddAgent(model, undefined, {
    algorithm: ppo({ batchSize: 12, miniBatchSize: 6, numPpoEpochs: 2, learningRate: 0.01 }),
    historyTurns: 0,
    sftWarmStart: demonstrations,
    sftSteps: 3,
    sftLearningRate: 1e-3,
    onlineSft: true,
    onlineSftWeight: 1,
    seed: 3,
  });
  const trainer = new Trainer({
    agent,
    env: () => new CountingEnv({ length: 5 }),
    numEnvs: 4,
    turns: 48,
    seed: 11,
    checkpointDir: checkpoints,
  });
  await trainer.resume();
  const logs: (readonly [number, Metrics])[] = [];
  const stop = new AbortController();
  await trainer.train({
    signal: stop.signal,
    tracker: {
      log: (step: number, metrics: Metrics) => {
        logs.push([step, Object.fromEntries(Object.entries(metrics).filter(([name]) => !TIMES.test(name)))]);
        if (step > 0) onUpdate(trainer, step);
        if (step === updates) stop.abort();
      },
    },
  });
  return { logs, values: await readTrainedValues(model) };
}

const fresh = () => mkdtemp(join(folder, "run-"));

describe("Trainer with a warm start and online SFT", () => {
  it("resumes with the numbers of an uninterrupted run: buffer, unfinished episodes, optimizers", async () => {
    const whole = await train(await fresh());
    const checkpoints = await fresh();
    const first = await train(checkpoints, 2);
    const rest = await train(checkpoints);
    expect(whole.logs.map(([step]) => step)).toEqual([0, 1, 2, 3, 4]);
    expect([...first.logs, ...rest.logs]).toEqual(whole.logs);
    expect(rest.values).toEqual(whole.values);
    const [[, warm], , , , [, last]] = whole.logs;
    expect(Object.keys(warm)).toContain("sft/loss");
    expect(last["sft/loss"]).toBeGreaterThan(0);
    expect(last["replay/size"]).toBeGreaterThan(10);
    const warmedUp = await fresh();
    const start = await train(warmedUp, 0);
    const training = await train(warmedUp);
    expect([...start.logs, ...training.logs]).toEqual(whole.logs);
    expect(training.values).toEqual(whole.values);
  });

  it("disables and enables online SFT between updates", async () => {
    const { logs } = await train(await fresh(), 4, (trainer, update) => (trainer.onlineSft = update === 2));
    expect(logs.slice(1).map(([, metrics]) => "sft/loss" in metrics)).toEqual([true, false, true, false]);
  });

  it("stays disabled after a checkpoint", async () => {
    const checkpoints = await fresh();
    await train(checkpoints, 2, (trainer) => (trainer.onlineSft = false));
    const { logs } = await train(checkpoints);
    expect(logs.map(([, metrics]) => "sft/loss" in metrics)).toEqual([false, false]);
  });
});

describe("a run with a warm start", () => {
  it("does not repeat a complete one", async () => {
    const output = await fresh();
    const settings = { env: "FrozenLake-v1", numEnvs: 4, sftWarmStart: "5", sftSteps: 4, turns: 0 };
    const run = await startRun(settings, output);
    await run.train();
    await run.close();
    const resumed = await resumeRun(output, { turns: 16 });
    expect([resumed.resumedAt, resumed.hasCheckpoint]).toEqual([0, true]);
    let steps = 0;
    const { state } = await resumed.train({ onWarmStart: () => steps++ });
    await resumed.close();
    expect([steps, state.updates]).toEqual([0, 1]);
    const records = await readMetrics(join(output, "metrics.jsonl"));
    expect(records.map(({ step }) => step)).toEqual([0, 1]);
  });

  it("continues the warm start if it was stopped, and logs it once", async () => {
    const output = await fresh();
    const small = { numEnvs: 4, batchSize: 16, turns: 16, maxEpisodeSteps: 4, numPpoEpochs: 1 };
    const wandb = { wandbProject: "P", wandbMode: "offline" } as const;
    const run = await startRun({ env: "FrozenLake-v1", ...small, ...wandb, sftWarmStart: "5", sftSteps: 4 }, output);
    const stop = new AbortController();
    const { isInterrupted } = await run.train({ signal: stop.signal, onWarmStart: () => stop.abort() });
    await run.close();
    expect(isInterrupted).toBe(true);
    const warnings: string[] = [];
    const resumed = await resumeRun(output, {}, { onWarning: (message) => void warnings.push(message) });
    let steps = 0;
    await resumed.train({ onWarmStart: () => steps++ });
    await resumed.close();
    expect([steps, warnings]).toEqual([3, []]);
    const records = await readMetrics(join(output, "metrics.jsonl"));
    expect(records.map(({ step }) => step)).toEqual([0, 1]);
  });
});
