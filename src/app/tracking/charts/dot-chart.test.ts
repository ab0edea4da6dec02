import { describe, expect, it } from "vitest";
import { renderDotChart, type DotChart } from "./dot-chart.js";

const chart: DotChart = {
  title: "Blackjack",
  xLabel: "trials",
  yLabel: "mean return",
  series: [
    { name: "to the end", dots: [{ label: "4", y: -0.2, error: 0.1, values: [-0.3, -0.1], tooltip: "rate < 0.1" }] },
    { name: "stopped", dots: [{ label: "2", y: -0.4 }] },
  ],
};

function attributesOf(svg: string, kind: string): Record<string, string>[] {
  const lines = svg.split("\n").filter((line) => line.includes(`class="${kind}"`));
  return lines.map((line) =>
    Object.fromEntries(Array.from(line.matchAll(/(\w+)="([^"]*)"/g), ([, name, value]) => [name, value])),
  );
}

describe("renderDotChart", () => {
  it("places dots side by side with error bars and values", () => {
    const svg = renderDotChart(chart);
    const [dot, other] = attributesOf(svg, "dot");
    const [error] = attributesOf(svg, "error");
    const [low, high] = attributesOf(svg, "value");
    const [bottom] = attributesOf(svg, "axis");
    const top = Math.min(...attributesOf(svg, "grid").map(({ y1 }) => Number(y1)));
    // The axis goes from -0.4, the lowest dot, to -0.1, the end of the error bar.
    expect(other.cy).toBe(bottom.y1);
    expect(Number(high.cy)).toBe(top);
    const unit = (Number(bottom.y1) - top) / 0.3;
    expect(Number(dot.cy)).toBeCloseTo(top + 0.1 * unit, 1);
    expect(Number(low.cy)).toBeCloseTo(top + 0.2 * unit, 1);
    expect(error).toMatchObject({ x1: dot.cx, x2: dot.cx, y1: low.cy, y2: high.cy });
    // Two dots, each in the middle of its half.
    const width = Number(bottom.x2) - Number(bottom.x1);
    expect(Number(dot.cx) - Number(bottom.x1)).toBe(width / 4);
    expect(Number(other.cx) - Number(bottom.x1)).toBe((3 * width) / 4);
    expect([dot.fill, other.fill]).toEqual(["#0a7cc1", "#e07b00"]);
    expect(svg).toMatch(new RegExp(`<text class="soft" x="${dot.cx}" y="\\d+" text-anchor="middle">4</text>`));
    expect(svg).toContain("<title>rate &lt; 0.1</title>");
    expect(svg).toContain(">stopped</text>");
  });

  it("writes as many labels as fit", () => {
    const dots = Array.from({ length: 100 }, (_, i) => ({ label: `t${i}`, y: i }));
    const svg = renderDotChart({ ...chart, series: [{ name: "trials", dots }] });
    expect(attributesOf(svg, "dot")).toHaveLength(100);
    // 6.24 units each, so every fourth.
    expect(svg.match(/>t\d+</g)).toEqual(Array.from({ length: 25 }, (_, i) => `>t${4 * i}<`));
  });

  it("rejects a chart without values", () => {
    expect(() => renderDotChart({ ...chart, series: [] })).toThrow("no value is a finite number");
  });
});
