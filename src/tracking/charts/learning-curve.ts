import { LlamaGymError } from "../../errors.js";
import { linePath, bandPath, type Point } from "./paths.js";
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

const WIDTH = 720;
/** Of the title and one row of names, the plot, and what stands below it. */
const HEIGHT = 400;
const TOP = 72;
const BOTTOM = 340;
const LEFT = 72;
const ROW = 16;
/** About how wide a character is. */
const CHARACTER = 7;
const X_TICKS = 6;
const Y_TICKS = 6;

/** After Okabe and Ito's palette for colour-blind readers, in tones that stand out on light and dark ground alike. */
const COLOURS = ["#0a7cc1", "#e07b00", "#009e73", "#cc5fa0", "#8c72d8", "#b08d00", "#3aa5d8", "#d55e00"];

const STYLE = `
  .ground { fill: #ffffff; } .text { fill: #24292f; } .soft { fill: #57606a; }
  .grid { stroke: #d8dee4; } .axis { stroke: #8c959f; } .reference { stroke: #57606a; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; } .text { fill: #e6edf3; } .soft { fill: #9198a1; }
    .grid { stroke: #262c36; } .axis { stroke: #656c76; } .reference { stroke: #9198a1; }
  }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .title { font-size: 16px; font-weight: 600; }
  .series { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .band { stroke: none; fill-opacity: 0.18; }
  .reference { stroke-width: 1.5; stroke-dasharray: 5 4; }`;

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
  const names = legend(series);
  const height = HEIGHT + ROW * (names.rows - 1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${WIDTH}" height="${height}" rx="8"/>`,
    text(LEFT, 30, title, "text title"),
    ...names.parts,
    `<g transform="translate(0 ${height - HEIGHT})">`,
    ...yTicks(yAxis, y, right),
    ...xTicks(xAxis, x, right),
    text((LEFT + right) / 2, HEIGHT - 16, xLabel, "soft", "middle"),
    text(0, 0, yLabel, "soft", "middle", `translate(20 ${(TOP + BOTTOM) / 2}) rotate(-90)`),
    ...referenceLines(references, y, right),
    ...series.flatMap((line, index) => drawn(line, COLOURS[index % COLOURS.length], x, y)),
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

type Scale = (value: number) => number;

function scale({ low, high }: Range, from: number, to: number): Scale {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

function checkLengths({ name, x, y, low = y, high = y }: CurveSeries): void {
  const lengths = [x, y, low, high].map((values) => values.length);
  if (lengths.every((length) => length === x.length)) return;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `The curve "${name}" has ${lengths.join(", ")} values of x, y, low and high; there must be as many of each.`,
  );
}

function rangeOf(values: readonly number[]): Range {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high)
    throw new LlamaGymError("INVALID_ARGUMENT", "There is no curve to draw: no value is a finite number.");
  return { low, high };
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

/** The names of the series above the plot, each behind a piece of its line, in as many rows as they need. */
function legend(series: readonly CurveSeries[]): { readonly parts: readonly string[]; readonly rows: number } {
  let [left, rows] = [LEFT, 1];
  const parts = series.flatMap(({ name }, index) => {
    const width = 40 + CHARACTER * name.length;
    if (left > LEFT && left + width > WIDTH) [left, rows] = [LEFT, rows + 1];
    const y = 36 + ROW * rows;
    const colour = COLOURS[index % COLOURS.length];
    const line = `<line x1="${left}" x2="${left + 18}" y1="${y - 4}" y2="${y - 4}" stroke="${colour}" stroke-width="3"/>`;
    const label = text(left + 24, y, name, "text");
    left += width;
    return [line, label];
  });
  return { parts, rows };
}

function xTicks({ ticks }: Axis, x: Scale, right: number): string[] {
  const labels = tickLabels(ticks);
  return [
    `<line class="axis" x1="${LEFT}" x2="${right}" y1="${BOTTOM}" y2="${BOTTOM}"/>`,
    ...ticks.map((tick, index) => text(place(x(tick)), BOTTOM + 18, labels[index], "soft", "middle")),
  ];
}

function yTicks({ ticks }: Axis, y: Scale, right: number): string[] {
  const labels = tickLabels(ticks);
  return ticks.flatMap((tick, index) => {
    const at = place(y(tick));
    return [
      `<line class="grid" x1="${LEFT}" x2="${right}" y1="${at}" y2="${at}"/>`,
      text(LEFT - 8, at + 4, labels[index], "soft", "end"),
    ];
  });
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

function text(x: number, y: number, content: string, kind: string, anchor = "start", transform?: string): string {
  const where = transform === undefined ? `x="${x}" y="${y}"` : `transform="${transform}"`;
  return `<text class="${kind}" ${where} text-anchor="${anchor}">${escaped(content)}</text>`;
}

function place(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
