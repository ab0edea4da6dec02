import { COLOURS, BOTTOM, escaped, LEFT, picture, place, rangeOf, scale, text, TOP, WIDTH, yTicks } from "./picture.js";
import { roundedAxis } from "./ticks.js";

/** A mean, with what it is the mean of. */
export interface Dot {
  /** What stands below it. */
  readonly label: string;
  readonly y: number;
  /** How far the line through it goes up and down. */
  readonly error?: number;
  /** Drawn smaller, at the same place. */
  readonly values?: readonly number[];
  /** Shown where a pointer rests on it. */
  readonly note?: string;
}

/** Dots of a colour. */
export interface DotSeries {
  readonly name: string;
  readonly dots: readonly Dot[];
}

export interface DotChart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly DotSeries[];
}

const Y_TICKS = 6;
const RIGHT = WIDTH - 24;
/** Units that a label needs. */
const LABEL_WIDTH = 24;

/**
 * Dots side by side in their order, series after series, as an SVG picture, legible on light and dark pages. The same data give
 * the same text. Throws INVALID_ARGUMENT where there is nothing to draw.
 */
export function dotChartSvg({ title, xLabel, yLabel, series }: DotChart): string {
  const dots = series.flatMap((own, index) =>
    own.dots.map((dot) => ({ ...dot, colour: COLOURS[index % COLOURS.length] })),
  );
  const heights = dots.flatMap(({ y, error = 0, values = [] }) => [y - error, y + error, ...values]);
  const axis = roundedAxis(rangeOf(heights), Y_TICKS);
  const yScale = scale(axis, BOTTOM, TOP);
  const width = (RIGHT - LEFT) / dots.length;
  // Of many labels, as many as there is room for.
  const every = Math.ceil(LABEL_WIDTH / width);
  const plot = [
    ...yTicks(axis, yScale, RIGHT),
    `<line class="axis" x1="${LEFT}" x2="${RIGHT}" y1="${BOTTOM}" y2="${BOTTOM}"/>`,
    ...dots.flatMap((dot, i) => {
      const x = place(LEFT + width * (i + 0.5));
      const label = i % every === 0 ? [text(x, BOTTOM + 18, dot.label, "soft", "middle")] : [];
      return [...label, ...drawn(dot, x, (value) => place(yScale(value)))];
    }),
  ];
  return picture({ title, xLabel, yLabel, series, right: RIGHT, plot });
}

function drawn(
  { y, error, values = [], note, colour }: Dot & { readonly colour: string },
  x: number,
  at: (value: number) => number,
): string[] {
  const whisker =
    error === undefined
      ? []
      : [
          `<line class="error" stroke="${colour}" x1="${x}" x2="${x}" y1="${at(y - error)}" y2="${at(y + error)}" stroke-width="2"/>`,
        ];
  const small = values.map(
    (value) => `<circle class="value" fill="${colour}" fill-opacity="0.4" cx="${x}" cy="${at(value)}" r="3"/>`,
  );
  const shown = note === undefined ? "" : `<title>${escaped(note)}</title>`;
  return [...whisker, ...small, `<circle class="dot" fill="${colour}" cx="${x}" cy="${at(y)}" r="5">${shown}</circle>`];
}
