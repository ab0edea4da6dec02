import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exponentialMeans, WindowMean } from "./window-mean.js";

const finite = fc.double({ min: -1e6, max: 1e6, noNaN: true });

describe("WindowMean", () => {
  it("is the mean of the last values", () => {
    const mean = new WindowMean(3);
    expect(mean.mean).toBeNaN();
    mean.add(1, 2);
    expect(mean.mean).toBe(1.5);
    mean.add(3, 10);
    expect(mean.mean).toBe(5);
    expect(mean.count).toBe(3);
  });

  it("goes on from its values with the same numbers", () => {
    fc.assert(
      fc.property(
        fc.array(finite),
        fc.array(finite, { minLength: 1 }),
        fc.integer({ min: 1, max: 20 }),
        (before, after, size) => {
          const whole = new WindowMean(size);
          whole.add(...before);
          const resumed = new WindowMean(size, JSON.parse(JSON.stringify(whole.values)) as number[]);
          whole.add(...after);
          resumed.add(...after);
          expect(resumed.mean).toBe(whole.mean);
          const last = [...before, ...after].slice(-size);
          expect(whole.mean).toBeCloseTo(last.reduce((sum, value) => sum + value, 0) / last.length, 9);
        },
      ),
    );
  });

  it("refuses a window without room", () => {
    expect(() => new WindowMean(0)).toThrow("whole number above 0");
    expect(() => new WindowMean(1.5)).toThrow("1.5");
  });
});

describe("exponentialMeans", () => {
  it("weighs by age and starts at the first value", () => {
    // 4, then (0.5 * 0.5 * 4 + 0.5 * 8) / 0.75, then (0.125 * 4 + 0.25 * 8 + 0.5 * 2) / 0.875
    expect(exponentialMeans([4, 8, 2], 0.5)).toEqual([4, 5 / 0.75, 3.5 / 0.875]);
    expect(exponentialMeans([4, 8, 2], 0)).toEqual([4, 8, 2]);
  });

  it("keeps a constant and stays between the extremes", () => {
    fc.assert(
      fc.property(
        fc.array(finite, { minLength: 1 }),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (values, decay) => {
          const slack = 1e-9 * Math.max(1, ...values.map(Math.abs));
          for (const mean of exponentialMeans(values, decay)) {
            expect(mean).toBeGreaterThanOrEqual(Math.min(...values) - slack);
            expect(mean).toBeLessThanOrEqual(Math.max(...values) + slack);
          }
        },
      ),
    );
  });

  it("passes over values that are not finite", () => {
    const [first, ...others] = exponentialMeans([NaN, 1, Infinity, 1], 0.9);
    expect(first).toBeNaN();
    for (const mean of others) expect(mean).toBeCloseTo(1, 12);
  });

  it("refuses a decay that forgets nothing", () => {
    expect(() => exponentialMeans([1], 1)).toThrow("below 1");
  });
});
