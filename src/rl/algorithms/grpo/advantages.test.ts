import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { grpoAdvantages, type GroupRewardOptions } from "./advantages.js";
import { rewardMetrics } from "./metrics.js";

const options: GroupRewardOptions = {
  numGenerations: 4,
  scaleRewards: "group",
  multiObjectiveAggregation: "sum_then_normalize",
};

const column = (rewards: readonly number[]) => rewards.map((reward) => [reward]);

describe("grpoAdvantages", () => {
  it("is the sample's standard score in its group", () => {
    const { advantages, groupStds } = grpoAdvantages(column([1, 2, 3, 4, 0, 0, 0, 8]), options);
    expect(groupStds[0]).toBeCloseTo(Math.sqrt(5 / 3), 12);
    expect(advantages[0]).toBeCloseTo(-1.5 / (Math.sqrt(5 / 3) + 1e-4), 12);
    expect(advantages[7]).toBeCloseTo(6 / (4 + 1e-4), 12);
  });

  it("has mean 0 in every group and keeps the rewards' order", () => {
    const rewardsOfTwoGroups = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(rewardsOfTwoGroups, fc.constantFrom("group", "batch", "none"), (rewards, scaleRewards) => {
        const { advantages } = grpoAdvantages(column(rewards), { ...options, scaleRewards });
        for (const start of [0, 4]) {
          const group = [0, 1, 2, 3].map((i) => start + i);
          expect(group.reduce((sum, i) => sum + advantages[i], 0)).toBeCloseTo(0, 8);
          const by = (values: ArrayLike<number>) => [...group].sort((a, b) => values[a] - values[b]);
          expect(by(advantages)).toEqual(by(rewards));
        }
      }),
    );
  });

  it("gives 0 to groups with equal rewards, with a deviation of 0", () => {
    const found = grpoAdvantages(column([0.1, 0.1, 0.1, 0.1, 1, 0, 0, 0]), options);
    for (const advantage of found.advantages.subarray(0, 4)) expect(advantage).toBeCloseTo(0, 10);
    expect(rewardMetrics(found)).toEqual({
      reward: expect.closeTo(0.175, 12) as number,
      reward_std: expect.closeTo(0.25, 12) as number,
      frac_reward_zero_std: 0.5,
    });
  });

  it("gives 0 to unscored samples and excludes them from the group", () => {
    const found = grpoAdvantages(column([1, 3, Number.NaN, Number.NaN]), options);
    const score = 1 / (Math.SQRT2 + 1e-4);
    expect([...found.advantages]).toEqual([expect.closeTo(-score, 12), expect.closeTo(score, 12), 0, 0]);
    expect(rewardMetrics(found).reward).toBe(2);
  });

  it("rejects incomplete groups and a wrong number of weights", () => {
    expect(() => grpoAdvantages(column([1, 2, 3]), options)).toThrow("3 samples do not fill groups of 4.");
    expect(() => grpoAdvantages(column([1, 2, 3, 4]), { ...options, rewardWeights: [1, 1] })).toThrow(
      "There are 2 reward weights, but sample 0 has rewards of 1 functions.",
    );
  });
});
