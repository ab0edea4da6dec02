import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { PPO, CountingRuns, recordRun } from "../../../test/support/counting-runs.js";
import { ppo } from "../algorithms/index.js";
import type { TrainerOptions } from "./trainer.js";

let runs: CountingRuns;
beforeAll(async () => void (runs = await CountingRuns.open()));
afterAll(() => runs.close());

let isPenalized = false;

/**
 * A high learning rate, so that the policy changes from update to update, and rewards that are
 * negative in the end.
 */
const variant = {
  env: { reward: (_step: number, action: number) => (isPenalized ? -1 : 1) * (1 + action) },
  agent: { historyTurns: 0, algorithm: ppo({ ...PPO, learningRate: 0.05 }) },
};
const setUp = (options: Partial<TrainerOptions>) =>
  runs.setUp({ evalSteps: 1, evalEpisodes: 6, saveSteps: 1, ...options }, variant);

/** Trains; from the third update on, rewards are negative. */
const train = (setup: Awaited<ReturnType<typeof setUp>>, options: { updates?: number } = {}) =>
  recordRun(setup, { ...options, onUpdate: ({ state }) => void (isPenalized = state.updates >= 2) });
beforeEach(() => void (isPenalized = false));

it("evaluates at its steps and after the last update, without a change to the training", async () => {
  const plain = await recordRun(await runs.setUp({}, variant));
  const { logs, values } = await recordRun(await setUp({ evalSteps: 3 }));
  expect(logs.map((metrics) => "eval/mean_return" in metrics)).toEqual([false, false, true, true]);
  expect(values).toEqual(plain.values);
  const withoutEvaluation = logs.map((metrics) =>
    Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith("eval/"))),
  );
  expect(withoutEvaluation).toEqual(plain.logs);
});

it("evaluates without a change to the training of a model with frozen layers, whose states the evaluation reads", async () => {
  const frozen = { peft: { layersToTransform: [1] }, env: { length: 5 } };
  const plain = await recordRun(await runs.setUp({}, frozen));
  const { logs, values } = await recordRun(await runs.setUp({ evalSteps: 1, evalEpisodes: 6 }, frozen));
  expect(logs.every((metrics) => "eval/mean_return" in metrics)).toBe(true);
  expect(values).toEqual(plain.values);
});

it("ends with the parameters of the best evaluation, also when resumed", async () => {
  const folders = [await runs.createFolder(), await runs.createFolder()];
  const setup = await setUp({ checkpointDir: folders[0], loadBestModelAtEnd: true });
  const { logs, values } = await train(setup);
  const returns = logs.map((metrics) => metrics["eval/mean_return"]);
  const best = returns.indexOf(Math.max(...returns));
  expect(returns.at(-1)).toBeLessThan(returns[best]);
  expect(await readdir(folders[0])).toContain(`best-00000${best + 1}`);
  isPenalized = false;
  const { values: bestValues } = await train(await setUp({ evalSteps: undefined }), { updates: best + 1 });
  expect(values).toEqual(bestValues);

  const options = { checkpointDir: folders[1], loadBestModelAtEnd: true };
  isPenalized = false;
  await train(await setUp(options), { updates: 2 });
  const again = await setUp(options);
  await again.trainer.resume();
  expect((await train(again)).values).toEqual(values);
});

it("needs evaluations and a folder for the best model", async () => {
  for (const options of [{ evalSteps: undefined, checkpointDir: "checkpoints" }, { checkpointDir: undefined }])
    await expect(setUp({ ...options, loadBestModelAtEnd: true })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
});
