import { expect, it } from "vitest";
import { formatCount, formatDuration, formatNumber } from "./format.js";

it.each([
  [0, "0"],
  [0.012345, "0.0123"],
  [-0.0608, "-0.0608"],
  [12.345, "12.3"],
  [999.9, "1,000"],
  [1234.5, "1,235"],
  [1234567, "1,234,567"],
  [0.00001234, "1.2e-5"],
  [-2e12, "-2e12"],
  [NaN, "nan"],
  [Infinity, "inf"],
  [-Infinity, "-inf"],
])("writes the number %d as %s", (value, text) => {
  expect(formatNumber(value)).toBe(text);
});

it("writes counts and durations", () => {
  expect([0, 999, 1000, 5_000_000].map(formatCount)).toEqual(["0", "999", "1,000", "5,000,000"]);
  expect([-1, 7.4, 59.6, 754, 3723].map(formatDuration)).toEqual(["0:00", "0:07", "1:00", "12:34", "1:02:03"]);
});
