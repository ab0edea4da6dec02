import { describe, expect, it } from "vitest";
import { renderSparkline } from "../progress/sparkline.js";
import { renderDotChart } from "./dot-chart.js";
import { renderLearningCurve } from "./learning-curve.js";
import { renderTextChart } from "./text-chart.js";

const EXTREMES = [NaN, Infinity, -Infinity, 1.7e308, -1e308, 1e300, 1e100, -1e100, 3.4e38, 1e21, 1e-150, 5e-324, 0];
const [labels, x] = [{ title: "Title", xLabel: "x", yLabel: "y" }, [1, 2, 3]];

describe("charts", () => {
  it.each(EXTREMES.flatMap((first) => EXTREMES.map((second) => [first, second])))("draw %d, %d and 1", (...values) => {
    const y = [...values, 1];
    const curve = { ...labels, series: [{ name: "run", x, y }] };
    const dots = y.map((value, i) => ({ label: String(i), y: value, error: value, values }));
    const pictures = [
      renderLearningCurve(curve),
      renderTextChart(curve),
      renderDotChart({ ...labels, series: [{ name: "run", dots }] }),
      renderSparkline(y, 3),
    ];
    expect(pictures.join("\n")).not.toMatch(/NaN|Infinity|undefined/);
  });

  it("label large and small numbers with exponents", () => {
    const render = (y: number) => renderTextChart({ ...labels, series: [{ name: "run", x, y: [0, y, y] }] });
    expect(render(1e300 / 1e210)).toContain("1e90");
    expect(render(4e-9)).toContain("4e\u22129");
  });
});
