import {
  COLORS,
  BOTTOM,
  escapeXml,
  LEFT,
  renderSvgChart,
  roundCoordinate,
  findRange,
  createScale,
  renderText,
  TOP,
  WIDTH,
  renderYTicks,
} from "./svg-chart.js";
import { createRoundedAxis, isDrawable } from "./axis.js";

/** A mean and the values behind it. */
export interface Dot {
  /** Label below the dot. */
  readonly label: string;
  readonly y: number;
  /** Half the length of the error bar. */
  readonly error?: number;
  /** Drawn as smaller dots at the same position. */
  readonly values?: readonly number[];
  /** Tooltip. */
  readonly tooltip?: string;
}

/** Dots of one color. */
export interface DotSeries {
  readonly name: string;
  readonly dots: readonly Dot[];
}

/** Data of `renderDotChart`. */
export interface DotChart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly DotSeries[];
}

const Y_TICKS = 6;
const RIGHT = WIDTH - 24;
/** Width of a label in SVG units. */
const LABEL_WIDTH = 24;

/**
 * Renders dots side by side, series after series, as an SVG for light and dark pages.
 * Deterministic.
 * @throws INVALID_ARGUMENT without a finite value.
 */
export function renderDotChart({ title, xLabel, yLabel, series }: DotChart): string {
  const dots = series.flatMap((dotSeries, index) =>
    dotSeries.dots.map((dot) => ({ ...dot, color: COLORS[index % COLORS.length] })),
  );
  const yValues = dots.flatMap(({ y, error = 0, values = [] }) => [y - error, y + error, ...values]);
  const axis = createRoundedAxis(findRange(yValues), Y_TICKS);
  const yScale = createScale(axis, BOTTOM, TOP);
  const width = (RIGHT - LEFT) / dots.length;
  // Only as many labels as fit.
  const labelStride = Math.ceil(LABEL_WIDTH / width);
  const plot = [
    ...renderYTicks(axis, yScale, RIGHT),
    `<line class="axis" x1="${LEFT}" x2="${RIGHT}" y1="${BOTTOM}" y2="${BOTTOM}"/>`,
    ...dots.flatMap((dot, i) => {
      const x = roundCoordinate(LEFT + width * (i + 0.5));
      const label = i % labelStride === 0 ? [renderText(x, BOTTOM + 18, dot.label, "soft", "middle")] : [];
      return [...label, ...renderDot(dot, x, (value) => roundCoordinate(yScale(value)))];
    }),
  ];
  return renderSvgChart({ title, xLabel, yLabel, series, right: RIGHT, plot });
}

function renderDot(
  { y, error, values = [], tooltip, color }: Dot & { readonly color: string },
  x: number,
  yAt: (value: number) => number,
): string[] {
  const whisker =
    error === undefined || !isDrawable(y - error) || !isDrawable(y + error)
      ? []
      : [
          `<line class="error" stroke="${color}" x1="${x}" x2="${x}" y1="${yAt(y - error)}" y2="${yAt(y + error)}" stroke-width="2"/>`,
        ];
  if (!isDrawable(y)) return [];
  const valueDots = values
    .filter(isDrawable)
    .map((value) => `<circle class="value" fill="${color}" fill-opacity="0.4" cx="${x}" cy="${yAt(value)}" r="3"/>`);
  const title = tooltip === undefined ? "" : `<title>${escapeXml(tooltip)}</title>`;
  return [
    ...whisker,
    ...valueDots,
    `<circle class="dot" fill="${color}" cx="${x}" cy="${yAt(y)}" r="5">${title}</circle>`,
  ];
}
