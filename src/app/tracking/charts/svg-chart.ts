import { LlamaGymError } from "../../../core/errors.js";
import { formatTickLabels, type Axis, type AxisRange } from "./axis.js";

/** Of a picture, in its units. */
export const WIDTH = 720;
/** Of the title and one row of names, the plot, and what stands below it. */
const HEIGHT = 400;
/** Where the plot lies, without further rows of names. */
export const TOP = 72;
export const BOTTOM = 340;
export const LEFT = 72;
const TITLE_SIZE = 16;
const LEGEND_ROW_HEIGHT = 16;
/** About how wide a character is. */
export const CHARACTER_WIDTH = 7;

/** After Okabe and Ito's palette for colour-blind readers, in tones that stand out on light and dark ground alike. */
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

/** What is drawn with a name above the plot. */
interface NamedSeries {
  readonly name: string;
}

export interface SvgChart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Named above the plot in the colours of `COLOURS`, in order. */
  readonly series: readonly NamedSeries[];
  /** Where the plot ends. */
  readonly right: number;
  /** What is in the plot, axes included. */
  readonly plot: readonly string[];
}

/** A plot with its title, names and labels as an SVG picture. */
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

/** The title, in smaller letters where it would be cut off: one is at most 0.7 as wide as it is high. */
function renderTitle(title: string): string {
  const size = Math.min(TITLE_SIZE, (1.45 * (WIDTH - LEFT)) / title.length);
  return `<g style="font-size: ${roundCoordinate(size)}px">${renderText(LEFT, 30, title, "text title")}</g>`;
}

/** The names of the series above the plot, each behind a piece of its line, in as many rows as they need. */
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

/** Where a value lies in the picture. */
export type Scale = (value: number) => number;

export function createScale({ low, high }: AxisRange, from: number, to: number): Scale {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

/** From the least to the largest of the values that are finite. Throws INVALID_ARGUMENT where there are none. */
export function findRange(values: readonly number[]): AxisRange {
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

/** Lines across the plot at the ticks, with their values at the left. */
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

/** A text whose start, middle or end is at a place. */
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

/** A coordinate, to tenths. */
export function roundCoordinate(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A text as it stands in XML. */
export function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
