import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { PPO, CountingRuns, recordRun } from "../../../test/support/counting-runs.js";
import { ppo } from "../algorithms/index.js";
import { addEvaluation, type EvaluationHistory, type StoppingRule } from "./train-task.js";
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

it("counts evaluations without a better one", () => {
  const after = (values: readonly number[], rule: Partial<StoppingRule> = {}) =>
    values.reduce<EvaluationHistory | undefined>(
      (history, value) => addEvaluation(history, value, { metric: "m", ...rule }),
      undefined,
    );
  expect(after([1, 1, 0.5])).toEqual({ best: 1, sinceBest: 2 });
  expect(after([NaN, -2, -1])).toEqual({ best: -1, sinceBest: 0 });
  expect(after([NaN, NaN])).toEqual({ best: null, sinceBest: 2 });
  expect(after([2, 1, 3], { isLoss: true })).toEqual({ best: 1, sinceBest: 1 });
  // A better value below the threshold is the one to beat next, as in Transformers.
  expect(after([1, 1.2, 1.4], { earlyStoppingThreshold: 0.3 })).toEqual({ best: 1.4, sinceBest: 2 });
});

it("ends after evaluations without a better one, also when resumed", async () => {
  const all = await train(await setUp({ turns: 96 }));
  const returns = all.logs.map((metrics) => metrics["eval/mean_return"]);
  const best = returns.indexOf(Math.max(...returns));
  const options = { turns: 96, checkpointDir: await runs.createFolder(), earlyStoppingPatience: 2 };
  isPenalized = false;
  const first = await setUp(options);
  expect(await train(first, { updates: best + 2 })).toMatchObject({ isInterrupted: true });
  const again = await setUp(options);
  await again.trainer.resume();
  const result = await again.trainer.train({ onUpdate: ({ state }) => void (isPenalized = state.updates >= 2) });
  expect(result).toMatchObject({ isInterrupted: false, state: { updates: best + 3 } });
  expect(result.stoppedEarly).toBe(
    `eval/mean_return did not improve on ${returns[best]} in 2 evaluations (earlyStoppingPatience)`,
  );

  const complete = await setUp(options);
  await complete.trainer.resume();
  expect(await complete.trainer.train()).toMatchObject({ isInterrupted: false, state: { updates: best + 3 } });

  const patient = await setUp({ ...options, earlyStoppingPatience: 3 });
  await patient.trainer.resume();
  expect(await patient.trainer.train()).toMatchObject({ state: { updates: best + 4 } });
});

it("ends with an evaluation that reaches the threshold of the reward", async () => {
  const result = await (await setUp({ rewardThreshold: -100 })).trainer.train();
  expect(result).toMatchObject({ isInterrupted: false, state: { updates: 1 } });
  expect(result.stoppedEarly).toMatch(/^eval\/mean_return reached .*, and rewardThreshold is -100$/);
  const whole = await (await setUp({ rewardThreshold: -100, turns: 12 })).trainer.train();
  expect(whole).toMatchObject({ isInterrupted: false, state: { updates: 1 }, stoppedEarly: undefined });
  const { logs, isInterrupted } = await train(await setUp({ rewardThreshold: 1000 }));
  expect([logs.length, isInterrupted]).toEqual([4, false]);
});

it.each([
  [{ earlyStoppingPatience: 2, evalSteps: undefined }, "`earlyStoppingPatience` compares evaluations"],
  [{ rewardThreshold: 2, evalSteps: undefined }, "`rewardThreshold` compares evaluations"],
  [{ rewardThreshold: 2, evalEpisodes: 0 }, "`evalSteps` needs episodes"],
  [{ earlyStoppingThreshold: 2 }, "`earlyStoppingThreshold` is read with `earlyStoppingPatience` only"],
  [{ earlyStoppingPatience: 0 }, "`earlyStoppingPatience` must be"],
])("rejects %j", async (options, message) => {
  await expect(setUp(options)).rejects.toMatchObject({
    code: "INVALID_ARGUMENT",
    message: expect.stringContaining(message),
  });
});
