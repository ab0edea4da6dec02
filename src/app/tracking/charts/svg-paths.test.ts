import { describe, expect, it } from "vitest";
import { buildBandPath, buildLinePath, type ChartPoint } from "./svg-paths.js";

describe("buildLinePath", () => {
  it("connects the points, rounded to tenths", () => {
    expect(
      buildLinePath([
        [0, 10],
        [5.04, 2.26],
        [9, -0.01],
      ]),
    ).toBe("M0 10L5 2.3L9 0");
  });

  it("leaves gaps and draws isolated points as dots", () => {
    expect(
      buildLinePath([
        [0, 1],
        [1, NaN],
        [2, 3],
        [3, Infinity],
        [4, 5],
        [5, 6],
      ]),
    ).toBe("M0 1L0 1M2 3L2 3M4 5L5 6");
    expect(buildLinePath([])).toBe("");
  });

  it("keeps the first, extreme and last points of a pixel column", () => {
    const column: ChartPoint[] = [5, 9, 2, 4, 7, 6].map((y, index) => [3 + index / 10, y]);
    expect(buildLinePath([...column, [4, 0]])).toBe("M3 5L3.1 9L3.2 2L3.5 6L4 0");
    const many: ChartPoint[] = Array.from({ length: 100_000 }, (_, index) => [index / 200, Math.sin(index)]);
    expect(buildLinePath(many).split("L").length).toBeLessThanOrEqual(2001);
  });
});

describe("buildBandPath", () => {
  it("encloses the area, with gaps where either line has none", () => {
    const low: ChartPoint[] = [
      [0, 5],
      [1, 6],
      [2, NaN],
      [3, 5],
      [4, 5],
    ];
    const high: ChartPoint[] = [
      [0, 1],
      [1, 2],
      [2, 1],
      [3, 1],
      [4, 2],
    ];
    expect(buildBandPath(low, high)).toBe("M0 1L1 2L1 6L0 5ZM3 1L4 2L4 5L3 5Z");
  });
});
