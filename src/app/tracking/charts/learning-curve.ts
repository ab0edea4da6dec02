import { LlamaGymError } from "../../../core/errors.js";
import { buildLinePath, buildBandPath, type ChartPoint } from "./svg-paths.js";
import {
  BOTTOM,
  CHARACTER_WIDTH,
  COLORS,
  LEFT,
  renderSvgChart,
  roundCoordinate,
  findRange,
  createScale,
  renderText,
  TOP,
  WIDTH,
  renderYTicks,
  type Scale,
} from "./svg-chart.js";
import { createRoundedAxis, createExactAxis, formatTickLabels, isDrawable, type Axis, type AxisRange } from "./axis.js";

/** A line with an optional band from `low` to `high`. Non-finite values leave gaps. */
export interface CurveSeries {
  readonly name: string;
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly low?: readonly number[];
  readonly high?: readonly number[];
}

/** A value to compare with, such as the random policy's return. */
export interface CurveReference {
  readonly name: string;
  readonly y: number;
}

/** Data of `renderLearningCurve`. */
export interface LearningCurve {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly CurveSeries[];
  readonly references?: readonly CurveReference[];
}

const X_TICKS = 6;
const Y_TICKS = 6;

/**
 * Renders learning curves as an SVG for light and dark pages (prefers-color-scheme). Deterministic.
 * @throws INVALID_ARGUMENT if the lists of a series differ in length, and without a finite value.
 */
export function renderLearningCurve({ title, xLabel, yLabel, series, references = [] }: LearningCurve): string {
  series.forEach(checkLengths);
  const visibleX = series.flatMap(({ x, y }) => x.filter((_, index) => isDrawable(y[index])));
  const yValues = series.flatMap(({ y, low = [], high = [] }) => [...y, ...low, ...high]);
  const xAxis = createExactAxis(extendToZero(findRange(visibleX)), X_TICKS);
  const yAxis = createRoundedAxis(findRange([...yValues, ...references.map(({ y }) => y)]), Y_TICKS);
  const right = WIDTH - 24 - Math.min(200, CHARACTER_WIDTH * Math.max(0, ...references.map(({ name }) => name.length)));
  const x = createScale(xAxis, LEFT, right);
  const y = createScale(yAxis, BOTTOM, TOP);
  const plot = [
    ...renderYTicks(yAxis, y, right),
    ...renderXTicks(xAxis, x, right),
    ...renderReferenceLines(references, y, right),
    ...series.flatMap((line, index) => renderCurve(line, COLORS[index % COLORS.length], x, y)),
  ];
  return renderSvgChart({ title, xLabel, yLabel, series, right, plot });
}

function checkLengths({ name, x, y, low = y, high = y }: CurveSeries): void {
  const lengths = [x, y, low, high].map((values) => values.length);
  if (lengths.every((length) => length === x.length)) return;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `The curve "${name}" has ${lengths.join(", ")} values of x, y, low and high; their numbers must be equal.`,
  );
}

/** Extends a range to 0 if it starts in the first tenth. */
function extendToZero({ low, high }: AxisRange): AxisRange {
  return { low: low > 0 && low < high / 10 ? 0 : low, high };
}

function renderCurve({ x, y, low, high }: CurveSeries, color: string, xScale: Scale, yScale: Scale): string[] {
  const points = (values: readonly number[]): ChartPoint[] => values.map((value, i) => [xScale(x[i]), yScale(value)]);
  const line = `<path class="series" stroke="${color}" d="${buildLinePath(points(y))}"/>`;
  if (low === undefined || high === undefined) return [line];
  return [`<path class="band" fill="${color}" d="${buildBandPath(points(low), points(high))}"/>`, line];
}

function renderXTicks({ ticks }: Axis, x: Scale, right: number): string[] {
  const labels = formatTickLabels(ticks);
  return [
    `<line class="axis" x1="${LEFT}" x2="${right}" y1="${BOTTOM}" y2="${BOTTOM}"/>`,
    ...ticks.map((tick, index) => renderText(roundCoordinate(x(tick)), BOTTOM + 18, labels[index], "soft", "middle")),
  ];
}

/**
 * Renders dashed lines with labels on the right, which are moved apart where they would overlap.
 */
function renderReferenceLines(references: readonly CurveReference[], y: Scale, right: number): string[] {
  const sorted = [...references].sort((a, b) => b.y - a.y);
  let labelY = -Infinity;
  return sorted.flatMap(({ name, y: value }) => {
    const lineY = roundCoordinate(y(value));
    labelY = Math.max(lineY + 4, labelY + 14);
    return [
      `<line class="reference" x1="${LEFT}" x2="${right}" y1="${lineY}" y2="${lineY}"/>`,
      renderText(right + 8, roundCoordinate(labelY), name, "soft"),
    ];
  });
}
