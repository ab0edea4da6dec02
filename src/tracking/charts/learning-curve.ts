import { LlamaGymError } from "../../errors.js";
import { linePath, bandPath, type Point } from "./paths.js";
import {
  BOTTOM,
  CHARACTER,
  COLOURS,
  LEFT,
  picture,
  place,
  rangeOf,
  scale,
  text,
  TOP,
  WIDTH,
  yTicks,
  type Scale,
} from "./picture.js";
import { roundedAxis, exactAxis, tickLabels, type Axis, type Range } from "./ticks.js";

/** A line of a chart; `low` and `high` draw a band around it. Values that are not finite leave a gap. */
export interface CurveSeries {
  readonly name: string;
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly low?: readonly number[];
  readonly high?: readonly number[];
}

/** A value to compare with: random, best known. */
export interface CurveReference {
  readonly name: string;
  readonly y: number;
}

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
 * Learning curves as an SVG picture, legible on light and dark pages (it follows prefers-color-scheme on a ground of its own).
 * The same data give the same text. Throws INVALID_ARGUMENT where lists of a series differ in length, or nothing can be drawn.
 */
export function learningCurveSvg({ title, xLabel, yLabel, series, references = [] }: LearningCurve): string {
  series.forEach(checkLengths);
  const shown = series.flatMap(({ x, y }) => x.filter((_, index) => Number.isFinite(y[index])));
  const heights = series.flatMap(({ y, low = [], high = [] }) => [...y, ...low, ...high]);
  const xAxis = exactAxis(fromZero(rangeOf(shown)), X_TICKS);
  const yAxis = roundedAxis(rangeOf([...heights, ...references.map(({ y }) => y)]), Y_TICKS);
  const right = WIDTH - 24 - Math.min(200, CHARACTER * Math.max(0, ...references.map(({ name }) => name.length)));
  const x = scale(xAxis, LEFT, right);
  const y = scale(yAxis, BOTTOM, TOP);
  const plot = [
    ...yTicks(yAxis, y, right),
    ...xTicks(xAxis, x, right),
    ...referenceLines(references, y, right),
    ...series.flatMap((line, index) => drawn(line, COLOURS[index % COLOURS.length], x, y)),
  ];
  return picture({ title, xLabel, yLabel, series, right, plot });
}

function checkLengths({ name, x, y, low = y, high = y }: CurveSeries): void {
  const lengths = [x, y, low, high].map((values) => values.length);
  if (lengths.every((length) => length === x.length)) return;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `The curve "${name}" has ${lengths.join(", ")} values of x, y, low and high; there must be as many of each.`,
  );
}

/** A run that is first measured soon after its beginning is shown from its beginning. */
function fromZero({ low, high }: Range): Range {
  return { low: low > 0 && low < high / 10 ? 0 : low, high };
}

function drawn({ x, y, low, high }: CurveSeries, colour: string, xScale: Scale, yScale: Scale): string[] {
  const points = (values: readonly number[]): Point[] => values.map((value, i) => [xScale(x[i]), yScale(value)]);
  const line = `<path class="series" stroke="${colour}" d="${linePath(points(y))}"/>`;
  if (low === undefined || high === undefined) return [line];
  return [`<path class="band" fill="${colour}" d="${bandPath(points(low), points(high))}"/>`, line];
}

function xTicks({ ticks }: Axis, x: Scale, right: number): string[] {
  const labels = tickLabels(ticks);
  return [
    `<line class="axis" x1="${LEFT}" x2="${right}" y1="${BOTTOM}" y2="${BOTTOM}"/>`,
    ...ticks.map((tick, index) => text(place(x(tick)), BOTTOM + 18, labels[index], "soft", "middle")),
  ];
}

/** Dashed lines with their names at the right, moved apart where they would lie on one another. */
function referenceLines(references: readonly CurveReference[], y: Scale, right: number): string[] {
  const sorted = [...references].sort((a, b) => b.y - a.y);
  let lowest = -Infinity;
  return sorted.flatMap(({ name, y: value }) => {
    const at = place(y(value));
    lowest = Math.max(at + 4, lowest + 14);
    return [
      `<line class="reference" x1="${LEFT}" x2="${right}" y1="${at}" y2="${at}"/>`,
      text(right + 8, place(lowest), name, "soft"),
    ];
  });
}
