import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planHalvingRungs, singleRung } from "./halving-rungs.js";

describe("planHalvingRungs", () => {
  it.each([
    [
      9,
      { reduction: 3 },
      [
        [9, 1 / 9],
        [3, 1 / 3],
        [1, 1],
      ],
    ],
    [
      12,
      { reduction: 3 },
      [
        [12, 1 / 9],
        [4, 1 / 3],
        [1, 1],
      ],
    ],
    [
      26,
      { reduction: 3 },
      [
        [26, 1 / 9],
        [8, 1 / 3],
        [2, 1],
      ],
    ],
    [
      16,
      { reduction: 2 },
      [
        [16, 1 / 16],
        [8, 1 / 8],
        [4, 1 / 4],
        [2, 1 / 2],
        [1, 1],
      ],
    ],
    [
      27,
      { reduction: 3, rungs: 2 },
      [
        [27, 1 / 3],
        [9, 1],
      ],
    ],
    [4, { reduction: 3, rungs: 1 }, [[4, 1]]],
  ])("%i trials, %j", (trials, options, expected) => {
    expect(planHalvingRungs(trials, options)).toEqual(expected.map(([trials, share]) => ({ trials, share })));
  });

  it("ends with whole runs of at least one trial and fewer than the reduction, at about equal cost per rung", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 5 }), fc.integer({ min: 5, max: 2000 }), (reduction, trials) => {
        const rungs = planHalvingRungs(trials, { reduction });
        const last = rungs.at(-1)!;
        expect(last.share).toBe(1);
        expect(last.trials).toBeGreaterThanOrEqual(1);
        expect(last.trials).toBeLessThan(reduction);
        const costs = rungs.map((rung) => rung.trials * rung.share);
        expect(Math.max(...costs)).toBeLessThan(2 * Math.min(...costs));
      }),
    );
  });

  it("rejects too few trials and too many rungs", () => {
    expect(() => planHalvingRungs(2, { reduction: 3 })).toThrow("needs at least 3 trials, got 2");
    expect(() => planHalvingRungs(9, { reduction: 3, rungs: 4 })).toThrow("9 trials allow at most 3 rungs");
  });
});

it("plans one rung without halving", () => {
  expect(singleRung(5)).toEqual([{ trials: 5, share: 1 }]);
});
