import { describe, expect, it } from "vitest";
import type { Trial } from "./sweep-plan.js";
import {
  selectPromoted,
  rankTrials,
  summarizeTrial,
  type SweepGoal,
  type TrialResult,
  type TrialRun,
} from "./trial-result.js";

const trial = (number: number): Trial => ({
  number,
  settings: {},
  options: { env: "x" },
  config: undefined,
  failure: undefined,
});

/** A run that had come to these values at the ends of the rungs. */
function run(seed: number, values: readonly number[], failure?: string): TrialRun {
  const rungResults = values.map((value, i) => ({ rung: i + 1, value, updates: i, turns: i, episodes: i }));
  return { seed, folder: `s${seed}`, rungResults, ...(failure === undefined ? {} : { failure }) };
}

/** A trial of two seeds. */
function result(number: number, first: readonly number[], second: readonly number[], failure?: string): TrialResult {
  return summarizeTrial(trial(number), [run(1, first), run(2, second, failure)], [1, 2]);
}

describe("summarizeTrial", () => {
  it("averages over seeds, with the standard error, at the last rung that all completed", () => {
    expect(result(1, [1], [3])).toMatchObject({ rung: 1, value: 2, standardError: 1 });
    expect(result(1, [1, 5], [3])).toMatchObject({ rung: 1, value: 2 });
    const one = summarizeTrial(trial(1), [run(1, [4])], [1]);
    expect(one).toMatchObject({ rung: 1, value: 4 });
    expect(one).not.toHaveProperty("standardError");
    const half = summarizeTrial(trial(1), [run(1, [4])], [1, 2]);
    expect(half.rung).toBe(0);
    expect(half).not.toHaveProperty("value");
  });

  it("fails if one of its runs fails", () => {
    expect(result(1, [1], [], "it diverged").failure).toBe("seed 2: it diverged");
    const impossible = summarizeTrial({ ...trial(2), failure: "no" }, [], [1]);
    expect(impossible).toMatchObject({ rung: 0, failure: "no" });
  });
});

describe("rankTrials", () => {
  const trials = [result(1, [1], [1]), result(2, [9], [], "bad"), result(3, [2], [2]), result(4, [0, 0.5], [0, 0.5])];
  it.each([
    ["maximize", [4, 3, 1, 2]],
    ["minimize", [4, 1, 3, 2]],
  ] as [SweepGoal, number[]][])("to %s, those that came further are first, failed ones last", (goal, expected) => {
    expect(rankTrials(trials, goal).map(({ trial }) => trial)).toEqual(expected);
  });
});

describe("selectPromoted", () => {
  const options = { rung: 2, count: 2, seeds: 2 };
  const trials = [result(1, [1], [1]), result(2, [5], [3]), result(3, [2], [2]), result(4, [9], [], "bad")];

  it("selects the best by the mean over seeds", () => {
    expect(selectPromoted(trials, { ...options, goal: "maximize" })).toEqual([2, 3]);
    expect(selectPromoted(trials, { ...options, goal: "minimize" })).toEqual([1, 3]);
    expect(selectPromoted(trials, { ...options, count: 9, goal: "maximize" })).toEqual([1, 2, 3]);
  });

  it("does not depend on later results", () => {
    const later = [
      result(1, [1], [1]),
      result(2, [5], [3], "bad"),
      result(3, [2, -7], [2, -7]),
      result(4, [9], [], "x"),
    ];
    expect(selectPromoted(later, { ...options, goal: "maximize" })).toEqual([2, 3]);
  });

  it("selects the first trials on a tie", () => {
    const alike = [3, 1, 2].map((number) => result(number, [1], [1]));
    expect(selectPromoted(alike, { ...options, goal: "maximize" })).toEqual([1, 2]);
  });
});
