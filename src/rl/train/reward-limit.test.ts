import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grpo, ppo, reinforce, rloo } from "../algorithms/index.js";
import { PPO, CountingRuns, recordRun } from "../../../test/support/counting-runs.js";
import { MAX_REWARD } from "../../envs/reward-limit.js";

let runs: CountingRuns;
beforeAll(async () => void (runs = await CountingRuns.open()));
afterAll(() => runs.close());

describe("a reward beyond the limit", () => {
  it.each([1e200, 1e308, Infinity, -Infinity, Number.NaN])(
    "of %d ends the run before it is trained on",
    async (value) => {
      let step = 0;
      const env = { reward: () => (++step === 100 ? value : 1) };
      const folder = await runs.createFolder();
      const { trainer } = await runs.setUp({ checkpointDir: folder, turns: 480 }, { env });
      await expect(trainer.train()).rejects.toMatchObject({
        code: "ENV_FAILED",
        message: expect.stringMatching(
          /<CountingEnv> returned the reward .* finite number from -1000000 to 1000000/,
        ) as string,
      });
      const text = await readFile(join(folder, (await readdir(folder)).at(-1)!, "state.json"), "utf8");
      expect(/"squares": (?<squares>.*)\n/.exec(text)?.groups?.squares).toMatch(/^\d/);
      expect(await (await runs.setUp({ checkpointDir: folder })).trainer.resume()).toBe(8);
    },
  );
});

describe("rewards at the limit", () => {
  it.each([
    ["ppo", ppo({ ...PPO, whitenAdvantages: false })],
    ["ppo with scaled rewards", ppo({ ...PPO, rewardScaling: true })],
    ["grpo", grpo({ batchSize: 8, numGenerations: 4, scaleRewards: "none" })],
    ["rloo", rloo({ batchSize: 8, numGenerations: 4 })],
    ["reinforce", reinforce({ batchSize: 8 })],
  ])("are trained on by %s without a skipped step", async (name, algorithm) => {
    const env = { reward: (_step: number, action: number) => (action === 0 ? MAX_REWARD : -MAX_REWARD) };
    // Only PPO trains a value head.
    const peft = name.startsWith("ppo") ? {} : { valueHead: undefined };
    const { trainer, model } = await runs.setUp(
      { episodes: 24, turns: undefined },
      { env, peft, agent: { seed: 3, algorithm } },
    );
    const { logs, values } = await recordRun({ trainer, model });
    expect(logs.reduce((sum, metrics) => sum + metrics.num_skipped_steps, 0)).toBe(0);
    expect(logs.flatMap((metrics) => [metrics.loss, metrics.grad_norm ?? 0]).every(Number.isFinite)).toBe(true);
    expect(values.every(Number.isFinite)).toBe(true);
  });
});
