import { LlamaGymError } from "../../../core/errors.js";
import { formatTickLabels, isDrawable, type Axis, type AxisRange } from "./axis.js";

/** Size of a chart in SVG units. */
export const WIDTH = 720;
/** Heights of the title with one row of names, the plot, and the labels below it. */
const HEIGHT = 400;
/** Edges of the plot with one row of names. */
export const TOP = 72;
export const BOTTOM = 340;
export const LEFT = 72;
const TITLE_SIZE = 16;
const LEGEND_ROW_HEIGHT = 16;
/** Approximate width of a character. */
export const CHARACTER_WIDTH = 7;

/** Okabe and Ito's color-blind palette, adjusted for light and dark backgrounds. */
export const COLORS = ["#0a7cc1", "#e07b00", "#009e73", "#cc5fa0", "#8c72d8", "#b08d00", "#3aa5d8", "#d55e00"];

const STYLE = `
  .ground { fill: #ffffff; } .text { fill: #24292f; } .soft { fill: #57606a; }
  .grid { stroke: #d8dee4; } .axis { stroke: #8c959f; } .reference { stroke: #57606a; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; } .text { fill: #e6edf3; } .soft { fill: #9198a1; }
    .grid { stroke: #262c36; } .axis { stroke: #656c76; } .reference { stroke: #9198a1; }
  }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .title { font-size: inherit; font-weight: 600; }
  .series { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .band { stroke: none; fill-opacity: 0.18; }
  .reference { stroke-width: 1.5; stroke-dasharray: 5 4; }`;

/** A series named above the plot. */
interface NamedSeries {
  readonly name: string;
}

export interface SvgChart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Named above the plot in the order of `COLORS`. */
  readonly series: readonly NamedSeries[];
  /** Right edge of the plot. */
  readonly right: number;
  /** SVG elements of the plot, including axes. */
  readonly plot: readonly string[];
}

export function renderSvgChart({ title, xLabel, yLabel, series, right, plot }: SvgChart): string {
  const names = renderLegend(series);
  const height = HEIGHT + LEGEND_ROW_HEIGHT * (names.rows - 1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(title)}">`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${WIDTH}" height="${height}" rx="8"/>`,
    renderTitle(title),
    ...names.parts,
    `<g transform="translate(0 ${height - HEIGHT})">`,
    renderText((LEFT + right) / 2, HEIGHT - 16, xLabel, "soft", "middle"),
    renderText(0, 0, yLabel, "soft", "middle", `translate(20 ${(TOP + BOTTOM) / 2}) rotate(-90)`),
    ...plot,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

/**
 * Renders the title, in a smaller font if it would not fit; a character is at most 0.7 times as
 * wide as high.
 */
function renderTitle(title: string): string {
  const size = Math.min(TITLE_SIZE, (1.45 * (WIDTH - LEFT)) / title.length);
  return `<g style="font-size: ${roundCoordinate(size)}px">${renderText(LEFT, 30, title, "text title")}</g>`;
}

/** Renders the legend above the plot, in as many rows as needed. */
function renderLegend(series: readonly NamedSeries[]): { readonly parts: readonly string[]; readonly rows: number } {
  let [left, rows] = [LEFT, 1];
  const parts = series.flatMap(({ name }, index) => {
    const width = 40 + CHARACTER_WIDTH * name.length;
    if (left > LEFT && left + width > WIDTH) [left, rows] = [LEFT, rows + 1];
    const y = 36 + LEGEND_ROW_HEIGHT * rows;
    const color = COLORS[index % COLORS.length];
    const line = `<line x1="${left}" x2="${left + 18}" y1="${y - 4}" y2="${y - 4}" stroke="${color}" stroke-width="3"/>`;
    const label = renderText(left + 24, y, name, "text");
    left += width;
    return [line, label];
  });
  return { parts, rows };
}

/** Maps a value to its coordinate; NaN for one that cannot be drawn. */
export type Scale = (value: number) => number;

export function createScale({ low, high }: AxisRange, from: number, to: number): Scale {
  return (value) => (isDrawable(value) ? from + ((value - low) / (high - low)) * (to - from) : Number.NaN);
}

/**
 * Returns the range of the values that can be drawn. @throws INVALID_ARGUMENT if there are none.
 */
export function findRange(values: readonly number[]): AxisRange {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!isDrawable(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high)
    throw new LlamaGymError("INVALID_ARGUMENT", "There is no curve to draw: no value is a finite number.");
  return { low, high };
}

/** Renders grid lines at the ticks, with their labels on the left. */
export function renderYTicks({ ticks }: Axis, y: Scale, right: number): string[] {
  const labels = formatTickLabels(ticks);
  return ticks.flatMap((tick, index) => {
    const tickY = roundCoordinate(y(tick));
    return [
      `<line class="grid" x1="${LEFT}" x2="${right}" y1="${tickY}" y2="${tickY}"/>`,
      renderText(LEFT - 8, tickY + 4, labels[index], "soft", "end"),
    ];
  });
}

/** Renders a text anchored at its start, middle or end. */
export function renderText(
  x: number,
  y: number,
  content: string,
  kind: string,
  anchor = "start",
  transform?: string,
): string {
  const position = transform === undefined ? `x="${x}" y="${y}"` : `transform="${transform}"`;
  return `<text class="${kind}" ${position} text-anchor="${anchor}">${escapeXml(content)}</text>`;
}

/** Rounds a coordinate to tenths. */
export function roundCoordinate(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Escapes a text for XML. */
export function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
