import { describe, expect, it } from "vitest";
import { renderLearningCurve, type LearningCurve } from "./learning-curve.js";

const curve: LearningCurve = {
  title: "Blackjack",
  xLabel: "hands",
  yLabel: "mean return",
  series: [{ name: "seed 1", x: [0, 50, 100], y: [-0.4, -0.2, 0] }],
};

/** Where the plot lies in a picture without references. */
const PLOT = { left: 72, right: 696, top: 72, bottom: 340 };

function linesOf(svg: string, kind: string): string[] {
  return svg.split("\n").filter((line) => line.includes(`class="${kind}"`));
}

describe("renderLearningCurve", () => {
  it("places values according to the axes", () => {
    const svg = renderLearningCurve(curve);
    const middle = (PLOT.left + PLOT.right) / 2;
    const half = (PLOT.top + PLOT.bottom) / 2;
    const path = `M${PLOT.left} ${PLOT.bottom}L${middle} ${half}L${PLOT.right} ${PLOT.top}`;
    expect(linesOf(svg, "series")).toEqual([`<path class="series" stroke="#0a7cc1" d="${path}"/>`]);
    expect(svg).toContain(
      `<text class="soft" x="${PLOT.left - 8}" y="${PLOT.bottom + 4}" text-anchor="end">\u22120.4</text>`,
    );
    expect(svg).toContain(`<text class="soft" x="${PLOT.left - 8}" y="${PLOT.top + 4}" text-anchor="end">0</text>`);
    expect(svg).toContain(
      `<text class="soft" x="${PLOT.right}" y="${PLOT.bottom + 18}" text-anchor="middle">100</text>`,
    );
    expect(linesOf(svg, "grid")).toHaveLength(5);
  });

  it("draws reference lines and separates their labels", () => {
    const references = [
      { name: "random", y: -0.4 },
      { name: "best", y: -0.04 },
      { name: "good", y: -0.05 },
    ];
    const svg = renderLearningCurve({ ...curve, references });
    const heights = linesOf(svg, "reference").map((line) => Number(/y1="([\d.]+)"/.exec(line)?.[1]));
    const span = PLOT.bottom - PLOT.top;
    expect(heights).toEqual(
      [PLOT.top + span * 0.1, PLOT.top + span * 0.125, PLOT.bottom].map((y) => Math.round(y * 10) / 10),
    );
    const names = ["best", "good", "random"].map((name) =>
      Number(new RegExp(`y="([\\d.]+)"[^>]*>${name}<`).exec(svg)?.[1]),
    );
    expect(names[1] - names[0]).toBeGreaterThanOrEqual(13.9);
  });

  it("extends the axes to bands and references", () => {
    const band = { name: "mean", x: [0, 100], y: [0, 1], low: [-3, 0], high: [0, 4] };
    const svg = renderLearningCurve({ ...curve, series: [band], references: [{ name: "far", y: 9.5 }] });
    expect(svg).toContain(">\u22125</text>");
    expect(svg).toContain(">10</text>");
    expect(linesOf(svg, "band")).toHaveLength(1);
  });

  it("gives each series a color and a legend entry, in as many rows as needed", () => {
    const series = Array.from({ length: 10 }, (_, index) => ({
      ...curve.series[0],
      name: `a rather long name ${index}`,
    }));
    const svg = renderLearningCurve({ ...curve, series });
    const colors = linesOf(svg, "series").map((line) => /stroke="(#\w+)"/.exec(line)?.[1]);
    expect(new Set(colors).size).toBe(8);
    for (const { name } of series) expect(svg).toContain(`>${name}</text>`);
    expect(svg).toContain('viewBox="0 0 720 448"');
  });

  it("leaves a gap where a value is missing and does not extend the axes to it", () => {
    const series = [{ name: "holes", x: [0, 1, 2, 3, 1000], y: [0, 1, NaN, 1, NaN] }];
    const svg = renderLearningCurve({ ...curve, series });
    expect(/ d="([^"]*)"/.exec(linesOf(svg, "series")[0])?.[1].match(/M/g)).toHaveLength(2);
    expect(svg).toContain(
      `<text class="soft" x="${PLOT.right}" y="${PLOT.bottom + 18}" text-anchor="middle">3.0</text>`,
    );
  });

  it("starts the axis at 0 if the curve starts close to it", () => {
    const from = (first: number) =>
      renderLearningCurve({ ...curve, series: [{ name: "run", x: [first, 1000], y: [0, 1] }] });
    const start = (svg: string) => / d="M([\d.]+) /.exec(linesOf(svg, "series")[0])?.[1];
    expect(start(from(50))).toBe(String(PLOT.left + (PLOT.right - PLOT.left) / 20));
    expect(start(from(500))).toBe(String(PLOT.left));
  });

  it("escapes the title", () => {
    const svg = renderLearningCurve({ ...curve, title: '<script>"&"' });
    expect(svg).toContain(">&lt;script&gt;&quot;&amp;&quot;</text>");
    expect(svg).not.toContain("<script>");
  });

  it("shrinks a long title", () => {
    const size = (title: string) =>
      Number(/<g style="font-size: ([\d.]+)px">/.exec(renderLearningCurve({ ...curve, title }))?.[1]);
    expect(size("Blackjack")).toBe(16);
    expect(size("b".repeat(58))).toBe(16);
    expect(size("b".repeat(120))).toBeCloseTo(7.8, 5);
  });

  it("rejects lists of different lengths and curves without values", () => {
    const uneven = { name: "uneven", x: [0, 1], y: [0, 1], low: [0], high: [1, 2] };
    expect(() => renderLearningCurve({ ...curve, series: [uneven] })).toThrow('"uneven" has 2, 2, 1, 2 values');
    expect(() => renderLearningCurve({ ...curve, series: [] })).toThrow("no curve to draw");
    expect(() => renderLearningCurve({ ...curve, series: [{ name: "nan", x: [1], y: [NaN] }] })).toThrow("no curve");
  });

  it("draws a single point", () => {
    const svg = renderLearningCurve({ ...curve, series: [{ name: "point", x: [10], y: [500] }] });
    expect(svg).not.toMatch(/NaN|Infinity/);
  });
});
