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

/** Where the plot lies. */
const PLOT = { left: 72, right: 696, top: 72, bottom: 340 };

function attributesOf(svg: string, kind: string): Record<string, string>[] {
  const lines = svg.split("\n").filter((line) => line.includes(`class="${kind}"`));
  return lines.map((line) =>
    Object.fromEntries(Array.from(line.matchAll(/(\w+)="([^"]*)"/g), ([, name, value]) => [name, value])),
  );
}

describe("renderDotChart", () => {
  it("places dots side by side with error bars and values", () => {
    const svg = renderDotChart(chart);
    const [first, second] = [PLOT.left + (PLOT.right - PLOT.left) / 4, PLOT.left + (3 * (PLOT.right - PLOT.left)) / 4];
    // The axis goes from -0.4 to -0.1.
    const at = (value: number) =>
      String(Math.round(10 * (PLOT.bottom - ((value + 0.4) / 0.3) * (PLOT.bottom - PLOT.top))) / 10);
    expect(attributesOf(svg, "dot")).toMatchObject([
      { cx: String(first), cy: at(-0.2), fill: "#0a7cc1" },
      { cx: String(second), cy: at(-0.4), fill: "#e07b00" },
    ]);
    expect(attributesOf(svg, "error")).toMatchObject([
      { x1: String(first), x2: String(first), y1: at(-0.3), y2: at(-0.1) },
    ]);
    expect(attributesOf(svg, "value")).toMatchObject([{ cy: at(-0.3) }, { cy: at(-0.1) }]);
    expect(svg).toContain(`<text class="soft" x="${first}" y="358" text-anchor="middle">4</text>`);
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
