import { expect, it } from "vitest";
import { sparkline } from "./sparkline.js";

it("has a block for each value when there is room", () => {
  expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 20)).toBe("▁▂▃▄▅▆▇█");
  expect(sparkline([7, 0], 20)).toBe("█▁");
  expect(sparkline([], 5)).toBe("");
});

it("draws means of neighbours when there is not", () => {
  expect(sparkline([0, 2, 7, 9, 14, 16], 3)).toBe("▁▅█"); // means 1, 8, 15
  const ramp = Array.from({ length: 1000 }, (_, index) => index);
  expect(sparkline(ramp, 8)).toBe("▁▂▃▄▅▆▇█");
});

it("draws a constant low and leaves room where nothing is finite", () => {
  expect(sparkline([5, 5, 5], 3)).toBe("▁▁▁");
  expect(sparkline([0, NaN, 1], 3)).toBe("▁ █");
  expect(sparkline([NaN], 3)).toBe(" ");
});

it("needs room", () => {
  expect(() => sparkline([1], 0)).toThrow("at least 1");
});
