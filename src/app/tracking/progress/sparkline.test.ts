import { expect, it } from "vitest";
import { renderSparkline } from "./sparkline.js";

it("draws one block per value when they fit", () => {
  expect(renderSparkline([0, 1, 2, 3, 4, 5, 6, 7], 20)).toBe("▁▂▃▄▅▆▇█");
  expect(renderSparkline([7, 0], 20)).toBe("█▁");
  expect(renderSparkline([], 5)).toBe("");
});

it("draws means of neighboring values when they do not fit", () => {
  expect(renderSparkline([0, 2, 7, 9, 14, 16], 3)).toBe("▁▅█"); // means 1, 8, 15
  const ramp = Array.from({ length: 1000 }, (_, index) => index);
  expect(renderSparkline(ramp, 8)).toBe("▁▂▃▄▅▆▇█");
});

it("draws a constant low and values that are not finite as spaces", () => {
  expect(renderSparkline([5, 5, 5], 3)).toBe("▁▁▁");
  expect(renderSparkline([0, NaN, 1], 3)).toBe("▁ █");
  expect(renderSparkline([NaN], 3)).toBe(" ");
});

it("rejects a width below 1", () => {
  expect(() => renderSparkline([1], 0)).toThrow(">= 1, got 0");
});
