import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grpo, reinforce, rloo, type GrpoOptions } from "../algorithms/index.js";
import { CountingEnv, EvenOddAgent, type CountingOptions } from "../../../test/support/counting.js";
import { TrainableModels, readTrainedValues } from "../../../test/support/trainable.js";
import type { Metrics } from "../algorithms/learner.js";
import { Trainer, type TrainerOptions } from "./trainer.js";

const models = new TrainableModels();
let modelFolder: string;
let folder: string;
beforeAll(async () => {
  modelFolder = (await models.open({ maxPositions: 512, scale: 0.2 })).folder;
  folder = await mkdtemp(join(tmpdir(), "groups-"));
});
afterAll(async () => {
  await models.close();
  await rm(folder, { recursive: true });
});

const GRPO: GrpoOptions = {
  batchSize: 6,
  numGenerations: 3,
  learningRate: 0.02,
  entropyCoef: 0.01,
  miniBatchSize: 8,
  numIterations: 2,
};

/** A run on episodes of two to five turns, which the start decides. */
async function setUp(
  options: Partial<TrainerOptions> = {},
  algorithm = grpo(GRPO),
  reward?: CountingOptions["reward"],
) {
  const model = await models.reopen(modelFolder, { r: 4, loraDropout: 0.1, seed: 1, valueHead: undefined });
  const envs: CountingEnv[] = [];
  const agent = new EvenOddAgent(model, undefined, { algorithm, seed: 3 });
  const env = () => {
    const made = new CountingEnv({ lengthForSeed: (seed) => 2 + (seed % 4), reward });
    envs.push(made);
    return made;
  };
  const trainer = new Trainer({ agent, env, numEnvs: 4, episodes: 24, seed: 11, ...options });
  return { model, trainer, envs };
}

const withoutTimes = (metrics: Metrics) =>
  Object.fromEntries(Object.entries(metrics).filter(([name]) => !/^time\/|_time$|per_second$/.test(name)));

/** Trains to the end, or for so many updates. */
async function run({ trainer, model }: Awaited<ReturnType<typeof setUp>>, updates = Infinity) {
  const logs: Metrics[] = [];
  const stop = new AbortController();
  const log = (_step: number, metrics: Metrics) => {
    logs.push(withoutTimes(metrics));
    if (logs.length >= updates) stop.abort();
  };
  const result = await trainer.train({ tracker: { log }, signal: stop.signal });
  return { logs, values: await readTrainedValues(model), ...result };
}

describe("Trainer with groups", () => {
  it("starts the episodes of a group from the same seed", async () => {
    const started = await setUp({ episodes: 6 }, grpo({ ...GRPO, maxResamples: 0 }));
    const { state } = await run(started);
    expect(state.episodes).toBe(6);
    const seeds = started.envs.flatMap((env) => env.seeds).sort((a, b) => a - b);
    const counts = [...new Set(seeds)].map((seed) => seeds.filter((other) => other === seed).length);
    expect(counts).toEqual([3, 3]);
  });

  it("shortens the last batch to the wanted number of episodes, also where groups are resampled", async () => {
    const constantReward = () => 1;
    const noSignal = await setUp({ episodes: 15 }, grpo({ ...GRPO, entropyCoef: 0, maxResamples: 3 }), constantReward);
    expect((await run(noSignal)).state.episodes).toBe(15);
    const whole = await setUp({ episodes: 8 });
    expect((await run(whole)).state).toMatchObject({ episodes: 9, updates: 2 });
  });

  it("learns the rewarded action", async () => {
    const algorithm = rloo({ batchSize: 16, numGenerations: 4, learningRate: 0.02, beta: 0 });
    const { logs } = await run(await setUp({ episodes: 160, numEnvs: 16 }, algorithm, (_, action) => action));
    const perTurn = logs.map(({ reward, "rollout/ep_len_mean": length }) => reward / length);
    expect(perTurn[0]).toBeLessThan(0.7);
    expect(perTurn.at(-1)).toBeGreaterThan(0.9);
  });

  it.each(["grpo", "reinforce"] as const)("resumes %s with the numbers of an uninterrupted run", async (name) => {
    const algorithm = { grpo: grpo(GRPO), reinforce: reinforce({ batchSize: 6, learningRate: 0.02 }) }[name];
    const whole = await run(await setUp({}, algorithm));
    expect(whole.logs.length).toBeGreaterThanOrEqual(2);
    const checkpoints = join(folder, name);
    const first = await run(await setUp({ checkpointDir: checkpoints }, algorithm), 1);
    expect(first.isInterrupted).toBe(true);
    const again = await setUp({ checkpointDir: checkpoints }, algorithm);
    expect(await again.trainer.resume()).toBe(1);
    const rest = await run(again);
    expect([...first.logs, ...rest.logs]).toEqual(whole.logs);
    expect(rest.values).toEqual(whole.values);
  });
});
