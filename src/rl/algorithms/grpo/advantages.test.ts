import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scoreCompletions } from "../../../../test/support/turns.js";
import { grpoAdvantages } from "./advantages.js";
import { resolveGrpoConfig, type GrpoOptions } from "./settings.js";

/** Returns the advantages of completions in groups of four. */
function compute(rewardsPerFunction: readonly (readonly number[])[], options: GrpoOptions = {}): number[] {
  const config = resolveGrpoConfig({ numGenerations: 4, batchSize: 8, ...options });
  const completions = scoreCompletions(rewardsPerFunction, { groupSize: 4, rewardWeights: options.rewardWeights });
  return grpoAdvantages(completions, config).map(([row]) => row[0]);
}

const column = (rewards: readonly number[]) => rewards.map((reward) => [reward]);

describe("grpoAdvantages", () => {
  it("is the completion's standard score in its group", () => {
    const advantages = compute(column([1, 2, 3, 4, 0, 0, 0, 8]));
    expect(advantages[0]).toBeCloseTo(-1.5 / (Math.sqrt(5 / 3) + 1e-4), 12);
    expect(advantages[7]).toBeCloseTo(6 / (4 + 1e-4), 12);
  });

  it("has mean 0 in every group and keeps the rewards' order", () => {
    const rewardsOfTwoGroups = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(rewardsOfTwoGroups, fc.constantFrom("group", "batch", "none"), (rewards, scaleRewards) => {
        const advantages = compute(column(rewards), { scaleRewards });
        for (const start of [0, 4]) {
          const group = [0, 1, 2, 3].map((i) => start + i);
          expect(group.reduce((sum, i) => sum + advantages[i], 0)).toBeCloseTo(0, 8);
          const by = (values: ArrayLike<number>) => [...group].sort((a, b) => values[a] - values[b]);
          expect(by(advantages)).toEqual(by(rewards));
        }
      }),
    );
  });

  it("gives 0 to groups with equal rewards", () => {
    for (const advantage of compute(column([0.1, 0.1, 0.1, 0.1, 1, 0, 0, 0])).slice(0, 4))
      expect(advantage).toBeCloseTo(0, 10);
  });

  it("gives 0 to unscored completions and excludes them from the group", () => {
    const score = 1 / (Math.SQRT2 + 1e-4);
    expect(compute(column([1, 3, Number.NaN, Number.NaN]))).toEqual([
      expect.closeTo(-score, 12),
      expect.closeTo(score, 12),
      0,
      0,
    ]);
  });

  it("normalizes each function's rewards, and their weighted sums, with normalize_then_sum", () => {
    const rewards = [
      [1, 0],
      [3, Number.NaN],
      [Number.NaN, 10],
      [Number.NaN, Number.NaN],
    ];
    const options = { multiObjectiveAggregation: "normalize_then_sum", rewardWeights: [1, 2] } as const;
    const [low, high] = [-1 / (Math.SQRT2 + 1e-4), 1 / (Math.SQRT2 + 1e-4)];
    const [zero, ten] = [-5 / (Math.sqrt(50) + 1e-4), 5 / (Math.sqrt(50) + 1e-4)];
    const sums = [low + 2 * zero, high, 2 * ten];
    const center = sums.reduce((sum, value) => sum + value, 0) / 3;
    const std = Math.sqrt(sums.reduce((sum, value) => sum + (value - center) ** 2, 0) / 2);
    expect(compute(rewards, options)).toEqual([
      ...sums.map((value) => expect.closeTo((value - center) / (std + 1e-4), 12) as number),
      0,
    ]);
  });

  it("gives 0 to a function's only reward, and normalizes sums where a completion has no functions", () => {
    const options = { multiObjectiveAggregation: "normalize_then_sum" } as const;
    const single = compute([[5], [Number.NaN], [Number.NaN], [Number.NaN]], options);
    expect(single).toEqual([0, 0, 0, 0]);
    const config = resolveGrpoConfig({ numGenerations: 4, batchSize: 8, ...options });
    const completions = scoreCompletions(column([1, 2, 3, 4]), { groupSize: 4 });
    const bare = completions.map((completion, i) =>
      i > 0 ? completion : { ...completion, rewardsPerFunction: undefined },
    );
    const [[row]] = grpoAdvantages(bare, config);
    expect(row[0]).toBeCloseTo(-1.5 / (Math.sqrt(5 / 3) + 1e-4), 12);
  });

  it("compares turns with the same prompt where they are grouped by it", () => {
    const config = resolveGrpoConfig({
      grouping: "observation",
      scaleRewards: "none",
      numGenerations: 4,
      batchSize: 4,
    });
    const completions = scoreCompletions(column([1, 2, 4, 9]), { groupSize: 4 }).map(
      ({ turns: [scored], ...rest }, i) => ({
        ...rest,
        turns: [{ ...scored, turn: { ...scored.turn, prompt: [7, i % 2] } }],
      }),
    );
    expect(grpoAdvantages(completions, config).map(([row]) => row[0])).toEqual([-1.5, -3.5, 1.5, 3.5]);
  });

  it("rejects incomplete groups and a wrong number of weights", () => {
    const options = { multiObjectiveAggregation: "normalize_then_sum" } as const;
    expect(() => compute(column([1, 2, 3]), options)).toThrow("3 samples do not fill groups of 4.");
    expect(() => compute(column([1, 2, 3, 4]), { ...options, rewardWeights: [1, 1] })).toThrow(
      "There are 2 reward weights, but sample 0 has rewards of 1 functions.",
    );
  });
});
