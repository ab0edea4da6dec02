import { describe, expect, it } from "vitest";
import { RewardScorer, UnscoredGuard, type RewardFunction } from "./reward-scorer.js";

const samples = ["a", "b", "c"].map((completion, i) => ({
  row: { prompt: "p", answer: i },
  completion,
  completionIds: [i],
}));

async function score(functions: RewardFunction | RewardFunction[], timeoutSeconds = 5) {
  const warnings: string[] = [];
  const scorer = new RewardScorer(functions, { timeoutSeconds, onWarning: (message) => void warnings.push(message) });
  const scored = await scorer.score(samples);
  await scorer.score(samples);
  return { ...scored, rewards: Array.from(scored.rewards), warnings };
}

const good: RewardFunction = ({ answer }) => answer.map((value) => Number(value));

describe("RewardScorer", () => {
  it("adds the weighted rewards of synchronous and asynchronous functions", async () => {
    const later: RewardFunction = async ({ completions }) => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return completions.map(() => 10);
    };
    const scorer = new RewardScorer([good, later], { rewardWeights: [2, 0.5], timeoutSeconds: 5, onWarning: () => {} });
    const { rewards, rewardsPerFunction, metrics } = await scorer.score(samples);
    expect([...rewards]).toEqual([5, 7, 9]);
    expect(rewardsPerFunction![2]).toEqual([2, 10]);
    expect(metrics).toEqual({
      "rewards/good/mean": 1,
      "rewards/good/std": 1,
      "rewards/later/mean": 10,
      "rewards/later/std": 0,
      "rewards/frac_unscored": 0,
    });
  });

  it.each<[string, RewardFunction, unknown[], string]>([
    [
      "throws for one completion",
      ({ completions }) => completions.map((text) => (text === "b" ? JSON.parse("{") : 1) as number),
      [1, Number.NaN, 1],
      "threw: Expected property name",
    ],
    ["throws always", () => Promise.reject(new Error("away")), [Number.NaN, Number.NaN, Number.NaN], "threw: away"],
    [
      "gives the wrong number",
      () => [1, 2],
      [Number.NaN, Number.NaN, Number.NaN],
      "returned 2 rewards for 3 completions",
    ],
    ["gives no list", () => 3 as never, [Number.NaN, Number.NaN, Number.NaN], "returned 3 instead of a list"],
    [
      "gives NaN",
      ({ completions }) => completions.map((text) => (text === "c" ? Number.NaN : 1)),
      [1, 1, Number.NaN],
      "returned the reward NaN",
    ],
    [
      "gives Infinity",
      ({ completions }) => completions.map(() => -Infinity),
      [Number.NaN, Number.NaN, Number.NaN],
      "returned the reward -Infinity",
    ],
    [
      "gives a reward beyond the limit",
      ({ completions }) => completions.map((text) => (text === "a" ? 1e200 : 1)),
      [Number.NaN, 1, 1],
      "returned the reward 1e+200, which must be a finite number from -1000000 to 1000000",
    ],
    [
      "gives a text",
      ({ completions }) => completions.map(() => "1" as never),
      [Number.NaN, Number.NaN, Number.NaN],
      'returned the reward "1"',
    ],
  ])("leaves samples unscored for a function that %s, with one warning", async (_, failing, expected, message) => {
    const { rewards, metrics, warnings } = await score(failing);
    expect(rewards).toEqual(expected);
    expect(metrics["rewards/frac_unscored"]).toBeCloseTo(expected.filter(Number.isNaN).length / 3, 12);
    expect(warnings.filter((warning) => warning.includes(message))).toHaveLength(1);
    const besides = await score([failing, good]);
    expect(besides.rewards.some(Number.isNaN)).toBe(false);
  });

  it("stops waiting for a function at the time limit", async () => {
    const { rewards, warnings } = await score([() => new Promise(() => {}), good], 0.02);
    expect(rewards).toEqual([0, 1, 2]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("took longer than 0.02 s");
  });

  it("converts booleans to 1 and 0", async () => {
    const { rewards, warnings } = await score(({ completions }) => completions.map((text) => text > "a"));
    expect(rewards).toEqual([0, 1, 1]);
    expect(warnings).toEqual([]);
  });

  it("numbers functions of the same name", async () => {
    const [one, two] = [1, 2].map((value) => ({
      fixed: (({ completions }) => completions.map(() => value)) as RewardFunction,
    }));
    const { metrics } = await score([one.fixed, two.fixed, ({ completions }) => completions.map(() => 3)]);
    expect(metrics).toMatchObject({ "rewards/fixed_0/mean": 1, "rewards/fixed_1/mean": 2, "rewards/reward_2/mean": 3 });
  });

  it("accepts null for unscored, without a warning", async () => {
    const { rewards, warnings } = await score(({ completions }) =>
      completions.map((text) => (text === "a" ? null : 1)),
    );
    expect(rewards).toEqual([Number.NaN, 1, 1]);
    expect(warnings).toEqual([]);
  });
});

describe("UnscoredGuard", () => {
  it("ends a run after several batches without a score", () => {
    const watch = new UnscoredGuard(3);
    const nothing = [Number.NaN];
    watch.check(nothing);
    watch.check(nothing);
    watch.check([1]);
    watch.check(nothing);
    watch.check(nothing);
    expect(() => watch.check(nothing)).toThrow(expect.objectContaining({ code: "REWARD_FAILED" }));
  });
});
