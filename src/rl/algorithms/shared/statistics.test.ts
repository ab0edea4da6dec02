import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mean, nanMean, nanStd, STD_EPSILON, variance, whiten, withoutNaN } from "./statistics.js";

describe("mean and variance", () => {
  it("count only masked-in numbers", () => {
    expect(mean([1, 100, 3], [1, 0, 1])).toBe(2);
    expect(variance([1, 100, 3], [1, 0, 1])).toBe(2);
    expect(variance([1, 100, 3], [1, 0, 1], { unbiased: false })).toBe(1);
  });

  it("divide the squares by n - 1", () => {
    expect(variance([1, 2, 6])).toBe((4 + 1 + 9) / 2);
    expect(variance([1, 3])).toBe(2);
  });

  it("give a single number variance 0", () => {
    expect(variance([5, 7], [0, 1])).toBe(0);
  });

  it("reject an empty selection", () => {
    expect(() => mean([])).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
    expect(() => mean([1, 2], [0, 0])).toThrow("every value is masked out");
  });
});

const spreadNumbers = fc
  .array(fc.integer({ min: -100, max: 100 }), { minLength: 2, maxLength: 30 })
  .filter((x) => x.some((value) => value !== x[0]));

describe("whiten", () => {
  it("gives mean 0 and variance 1, and keeps the order", () => {
    fc.assert(
      fc.property(spreadNumbers, (x) => {
        const white = whiten(x);
        expect(mean(white)).toBeCloseTo(0, 9);
        expect(variance(white)).toBeCloseTo(1, 4);
        const places = x.map((_, i) => i);
        expect([...places].sort((a, b) => white[a] - white[b])).toEqual([...places].sort((a, b) => x[a] - x[b]));
      }),
    );
  });

  it("preserves the mean, if configured", () => {
    expect(mean(whiten([1, 2, 6], { shiftMean: false }))).toBeCloseTo(3, 12);
  });

  it("adds 1e-8 to the variance, and divides by the least deviation at least", () => {
    const scaled = (std: number) => [expect.closeTo(-1e-4 / std, 9), expect.closeTo(1e-4 / std, 9)];
    // The variance of these two numbers is 2e-8.
    expect([...whiten([-1e-4, 1e-4])]).toEqual(scaled(Math.sqrt(3e-8)));
    expect([...whiten([-1e-4, 1e-4], { minStd: 0.5 })]).toEqual(scaled(Math.sqrt(0.25 + 1e-8)));
    expect([...whiten([-1e-4, 1e-4], { minStd: 1e-5 })]).toEqual(scaled(Math.sqrt(3e-8)));
    expect([...whiten([0, 2], { unbiased: false })]).toEqual([expect.closeTo(-1, 7), expect.closeTo(1, 7)]);
  });

  it("makes equal numbers 0", () => {
    expect([...whiten([4, 4, 4])]).toEqual([0, 0, 0]);
    expect([...whiten([4])]).toEqual([0]);
    expect(whiten([])).toHaveLength(0);
  });
});

describe("statistics without NaN", () => {
  it("leave out NaN", () => {
    expect(withoutNaN([1, Number.NaN, 3])).toEqual([1, 3]);
    expect(nanMean([1, Number.NaN, 3])).toBe(2);
    expect(nanStd([1, Number.NaN, 3])).toBe(Math.SQRT2);
    expect(nanStd([1, 2, 6])).toBe(Math.sqrt(7));
  });

  it("are NaN where too few numbers remain, but 0 for the deviation of one", () => {
    expect([nanMean([]), nanMean([Number.NaN])]).toEqual([Number.NaN, Number.NaN]);
    expect(nanMean([4])).toBe(4);
    expect([nanStd([]), nanStd([1, Number.NaN])]).toEqual([Number.NaN, Number.NaN]);
    expect(nanStd([5])).toBe(0);
  });

  it("add TRL's 1e-4 to a deviation", () => {
    expect(STD_EPSILON).toBe(1e-4);
  });
});
