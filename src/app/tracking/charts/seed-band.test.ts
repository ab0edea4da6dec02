import { expect, it } from "vitest";
import { computeSeedBand } from "./seed-band.js";

it("computes the mean and range of curves with different x", () => {
  const first = { x: [0, 10, 20], y: [0, 10, 0] };
  const second = { x: [5, 25], y: [10, 30] };
  // From 5 to 20: the first is 5, 10, 5, 0 there, the second 10, 15, 20, 25.
  const band = computeSeedBand("two", [first, second], 4);
  expect(band).toEqual({
    name: "two",
    x: [5, 10, 15, 20],
    y: [7.5, 12.5, 12.5, 12.5],
    low: [5, 10, 5, 0],
    high: [10, 15, 20, 25],
  });
});

it("returns a single curve unchanged", () => {
  const band = computeSeedBand("one", [{ x: [0, 4], y: [2, 6] }], 5);
  for (const values of [band.y, band.low, band.high]) expect(values).toEqual([2, 3, 4, 5, 6]);
});

it("rejects curves whose x ranges do not overlap", () => {
  const [early, late] = [
    { x: [0, 1], y: [0, 0] },
    { x: [2, 3], y: [0, 0] },
  ]; // no place has both
  expect(() => computeSeedBand("apart", [early, late])).toThrow("do not overlap");
  expect(() => computeSeedBand("none", [{ x: [], y: [] }])).toThrow("do not overlap");
  expect(() => computeSeedBand("nothing", [])).toThrow("do not overlap");
});
