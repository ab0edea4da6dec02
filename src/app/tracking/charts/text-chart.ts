import { createExactAxis, createRoundedAxis, formatTickLabels, isDrawable } from "./axis.js";
import type { LearningCurve } from "./learning-curve.js";
import { createScale, findRange } from "./svg-chart.js";

/** Marks of the series, in their order. */
const MARKS = "●○▲△■□◆◇";
const REFERENCE_MARK = "┄";
const HEIGHT = 16;
const Y_TICKS = 4;
const X_TICKS = 4;

/**
 * Renders learning curves as lines of text, at most `width` characters wide. @throws
 * INVALID_ARGUMENT without a finite value.
 */
export function renderTextChart(curve: LearningCurve, width = 80): string {
  const { title, xLabel, yLabel, series, references = [] } = curve;
  const yValues = [...series.flatMap(({ y }) => y), ...references.map(({ y }) => y)];
  const xAxis = createExactAxis(findRange(series.flatMap(({ x }) => x)), X_TICKS);
  const yAxis = createRoundedAxis(findRange(yValues), Y_TICKS);
  const yLabels = formatTickLabels(yAxis.ticks);
  const margin = Math.max(...yLabels.map((label) => label.length)) + 2;
  const columns = Math.max(20, width - margin - 1);
  const column = createScale(xAxis, 0, columns - 1);
  const row = createScale(yAxis, HEIGHT - 1, 0);
  const cells = Array.from({ length: HEIGHT }, () => blankLine(columns));
  for (const { y } of references) cells[Math.round(row(y))].fill(REFERENCE_MARK);
  series.forEach(({ x, y }, index) =>
    y.forEach((value, i) => {
      if (isDrawable(value)) cells[Math.round(row(value))][Math.round(column(x[i]))] = markOf(index);
    }),
  );
  const tickRows = new Map(yAxis.ticks.map((tick, i) => [Math.round(row(tick)), yLabels[i]]));
  const xLine = blankLine(columns);
  const xLabels = formatTickLabels(xAxis.ticks);
  xAxis.ticks.forEach((tick, i) => {
    const start = Math.min(columns - xLabels[i].length, Math.round(column(tick)));
    xLine.splice(start, xLabels[i].length, ...xLabels[i].split(""));
  });
  return [
    title,
    ...series.map(({ name }, index) => `${markOf(index)} ${name}`),
    ...references.map(({ name, y }) => `${REFERENCE_MARK} ${name} (${y})`),
    "",
    yLabel,
    ...cells.map((line, i) => `${(tickRows.get(i) ?? "").padStart(margin - 2)} │${line.join("").trimEnd()}`),
    `${" ".repeat(margin - 2)} └${"─".repeat(columns)}`,
    `${" ".repeat(margin)}${xLine.join("").trimEnd()}`,
    xLabel.padStart(margin + columns),
  ].join("\n");
}

const blankLine = (width: number) => Array.from({ length: width }, () => " ");
const markOf = (index: number) => MARKS[index % MARKS.length];
