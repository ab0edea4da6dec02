import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createExactAxis, createRoundedAxis, formatTickLabels } from "./axis.js";

describe("ticks", () => {
  it("are round and inside an exact axis", () => {
    expect(createExactAxis({ low: 0, high: 100 }, 5).ticks).toEqual([0, 20, 40, 60, 80, 100]);
    expect(createExactAxis({ low: -0.394, high: -0.043 }, 5).ticks).toEqual([-0.3, -0.2, -0.1]);
    expect(createExactAxis({ low: 3, high: 17_000 }, 6).ticks).toEqual([5000, 10_000, 15_000]);
  });

  it("are the ends of a rounded axis", () => {
    const ticks = [-0.4, -0.3, -0.2, -0.1, 0];
    expect(createRoundedAxis({ low: -0.394, high: -0.043 }, 4)).toEqual({ low: -0.4, high: 0, ticks });
    expect(createRoundedAxis({ low: 0, high: 475 }, 5)).toEqual({
      low: 0,
      high: 500,
      ticks: [0, 100, 200, 300, 400, 500],
    });
  });

  it("are evenly spaced and at most the requested number, for any range", () => {
    const value = fc.double({ min: -1e7, max: 1e7, noNaN: true });
    const size = fc.double({ min: 1e-6, max: 10, noNaN: true });
    fc.assert(
      fc.property(value, size, fc.integer({ min: 2, max: 10 }), (low, size, count) => {
        const extent = size * Math.max(1, Math.abs(low));
        const range = { low, high: low + extent };
        const slack = extent * 1e-6;
        const exact = createExactAxis(range, count);
        const wide = createRoundedAxis(range, count);
        expect(exact.ticks.length).toBeLessThanOrEqual(count + 1);
        expect(wide.ticks.length).toBeLessThanOrEqual(count + 2);
        expect(Math.min(range.high, ...exact.ticks)).toBeGreaterThanOrEqual(range.low - slack);
        expect(Math.max(range.low, ...exact.ticks)).toBeLessThanOrEqual(range.high + slack);
        expect(wide.low).toBeLessThanOrEqual(range.low + slack);
        expect(wide.high).toBeGreaterThanOrEqual(range.high - slack);
        for (const { ticks } of [exact, wide]) {
          const steps = ticks.slice(1).map((tick, index) => tick - ticks[index]);
          for (const step of steps) expect(Math.abs(step - steps[0])).toBeLessThan(slack);
        }
      }),
    );
  });

  it("surround a single value", () => {
    expect(createExactAxis({ low: 0, high: 0 }, 4)).toMatchObject({ low: -1, high: 1 });
    expect(createRoundedAxis({ low: 500, high: 500 }, 5)).toMatchObject({ low: 200, high: 800 });
  });

  it("have the same number of decimals", () => {
    expect(formatTickLabels([-0.4, -0.05, 0])).toEqual(["\u22120.40", "\u22120.05", "0"]);
    expect(formatTickLabels([0, 500, 1000])).toEqual(["0", "500", "1000"]);
    expect(formatTickLabels([0, 5000, 10_000])).toEqual(["0", "5k", "10k"]);
    expect(formatTickLabels([500_000, 1_000_000, 1_500_000])).toEqual(["0.5M", "1.0M", "1.5M"]);
  });
});
