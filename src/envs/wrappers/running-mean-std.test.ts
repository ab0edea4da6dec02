import { expect, it } from "vitest";
import { make } from "../registry/make.js";
import { NormalizeReward, TransformReward } from "./reward.js";
import { RunningMeanStd } from "./running-mean-std.js";

it.each([1e200, Infinity, Number.NaN])("a running mean skips %d and stays finite", (value) => {
  const running = new RunningMeanStd(2);
  running.update([1, 2]);
  const { mean, variance } = running;
  const [firstMean, firstVariance] = [mean[0], variance[0]];
  running.update([value, 3]);
  expect([mean[0], variance[0]]).toEqual([firstMean, firstVariance]);
  expect([...mean, ...variance].every(Number.isFinite)).toBe(true);
});

it.each([1e308, Infinity, Number.NaN])(
  "NormalizeReward keeps finite statistics after two rewards of %d",
  async (value) => {
    let step = 0;
    const env = new NormalizeReward(
      new TransformReward(make("CartPole-v1"), { reward: () => (step++ < 2 ? value : 1) }),
    );
    await env.reset({ seed: 1 });
    for (let i = 0; i < 4; i++) await env.step(0);
    expect(JSON.stringify(env.getState())).toMatch(
      /"mean":\[[\d.]+\],"variance":\[[\d.]+\],"count":[\d.]+\},"discountedReturn":[\d.e+]+\}/,
    );
  },
);
