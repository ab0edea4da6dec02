import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mean, variance, whiten } from "./statistics.js";

describe("mean and variance", () => {
  it("count only masked-in numbers", () => {
    expect(mean([1, 100, 3], [1, 0, 1])).toBe(2);
    expect(variance([1, 100, 3], [1, 0, 1])).toBe(2);
    expect(variance([1, 100, 3], [1, 0, 1], { unbiased: false })).toBe(1);
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

  it("makes equal numbers 0", () => {
    expect([...whiten([4, 4, 4])]).toEqual([0, 0, 0]);
    expect([...whiten([4])]).toEqual([0]);
    expect(whiten([])).toHaveLength(0);
  });
});
