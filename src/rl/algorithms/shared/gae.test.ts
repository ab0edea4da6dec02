import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { generalizedAdvantages } from "./gae.js";
import { centerByStep, discountedReturns, returnsByKind } from "./discounted-returns.js";

const rewards = [1, 0, -2, 4];
const values = [0.5, 0.25, -1, 2];

describe("generalizedAdvantages", () => {
  it("is the one-step error for lambda 0", () => {
    const { advantages } = generalizedAdvantages({ rewards, values }, { gamma: 0.5, lam: 0 });
    expect([...advantages]).toEqual([1 + 0.125 - 0.5, -0.5 - 0.25, -2 + 1 + 1, 4 - 2]);
  });

  it("has the discounted return for its returns where lambda is 1", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.double({ min: -9, max: 9, noNaN: true }), fc.boolean()), { minLength: 1 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (steps, gamma) => {
          const [r, ends] = [steps.map(([reward]) => reward), steps.map(([, end]) => end)];
          const v = r.map((reward, i) => Math.sin(reward + i));
          const { returns } = generalizedAdvantages({ rewards: r, values: v, terminated: ends }, { gamma, lam: 1 });
          discountedReturns(r, { gamma, ends }).forEach((wanted, i) => expect(returns[i]).toBeCloseTo(wanted, 9));
        },
      ),
    );
  });

  it("bootstraps after a truncation, but not after a termination", () => {
    const one = (flags: object) =>
      generalizedAdvantages({ rewards: [1, 1], values: [0, 0], bootstrap: [10, 20], ...flags }, { gamma: 0.5, lam: 1 })
        .advantages;
    expect([...one({})]).toEqual([6.5, 11]);
    expect([...one({ truncated: [true, false] })]).toEqual([6, 11]);
    expect([...one({ terminated: [true, true] })]).toEqual([1, 1]);
  });

  it("has no advantage for a perfect critic", () => {
    const known = discountedReturns(rewards, { gamma: 0.9 });
    const { advantages } = generalizedAdvantages({ rewards, values: known }, { gamma: 0.9, lam: 0.7 });
    for (const advantage of advantages) expect(advantage).toBeCloseTo(0, 12);
  });
});

describe("returns", () => {
  it("discount later rewards within an episode", () => {
    expect([...discountedReturns([1, 2, 4], { gamma: 0.5 })]).toEqual([3, 4, 4]);
    expect([...discountedReturns([1, 2, 4], { gamma: 0.5, ends: [0, 1, 0] })]).toEqual([2, 2, 4]);
  });

  it("are return-to-go or episode returns", () => {
    expect([...returnsByKind([1, 2, 4], { returns: "return-to-go", gamma: 0.5 })]).toEqual([3, 4, 4]);
    expect([...returnsByKind([1, 2, 4], { returns: "episode-return", gamma: 0.5 })]).toEqual([3, 3, 3]);
  });

  it("are centered over the episodes that have a step", () => {
    // Two equal returns, and one without others to compare with.
    expect(centerByStep([[1, 5, 7], [3, 5], [5]]).map((row) => [...row])).toEqual([[-2, 0, 0], [0, 0], [2]]);
    expect(centerByStep([])).toEqual([]);
  });
});
