import { describe, expect, it } from "vitest";
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
