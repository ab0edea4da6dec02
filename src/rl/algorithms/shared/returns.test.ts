import { describe, expect, it } from "vitest";
import { centerByStep, discountedReturns, mapEachStep } from "./discounted-returns.js";
import { turnReturns } from "./returns.js";

const rewards = [1, 0, 2];

describe("turnReturns", () => {
  it.each([
    ["return-to-go", "step", [1 + 0.25 * 2, 0.5 * 2, 2]],
    ["return-to-go", "terminal", [0.25 * 3, 0.5 * 3, 3]],
    ["episode-return", "step", [1.5, 1.5, 1.5]],
    ["episode-return", "terminal", [0.75, 0.75, 0.75]],
  ] as const)("credits turns with their %s from %s rewards", (returns, rewardSignal, expected) => {
    expect([...turnReturns(rewards, { returns, rewardSignal, gamma: 0.5 })]).toEqual(expected);
  });
});

describe("discountedReturns", () => {
  it("stops at the end of an episode", () => {
    const ends = [0, 1, 0, 0];
    expect([...discountedReturns([1, 2, 4, 8], { gamma: 0.5, ends })]).toEqual([1 + 1, 2, 4 + 4, 8]);
    expect([...discountedReturns([1, 2, 4, 8], { gamma: 0.5 })]).toEqual([1 + 1 + 1 + 1, 2 + 2 + 2, 8, 8]);
  });
});

describe("returns by step", () => {
  const episodes = [[1, 10, 100], [5], [6, 20]];

  it("are centered over the episodes that have the step", () => {
    expect(centerByStep(episodes).map((row) => [...row])).toEqual([[-3, -5, 0], [1], [2, 5]]);
  });

  it("are transformed step by step", () => {
    const columns: (readonly number[])[] = [];
    const found = mapEachStep(episodes, (column) => {
      columns.push(column);
      return column.map((value) => value * column.length);
    });
    expect(columns).toEqual([[1, 5, 6], [10, 20], [100]]);
    expect(found.map((row) => [...row])).toEqual([[3, 20, 100], [15], [18, 40]]);
    expect(mapEachStep([], (column) => column)).toEqual([]);
  });
});
