/** A position in the chart, in SVG units. */
export type ChartPoint = readonly [x: number, y: number];

/**
 * Builds the SVG path data of a line through points. Non-finite points leave gaps; isolated points
 * become dots.
 */
export function buildLinePath(points: readonly ChartPoint[]): string {
  return splitAtGaps(points)
    .map((piece) => {
      const [first, ...others] = decimate(piece);
      return `M${formatPoint(first)}${(others.length === 0 ? [first] : others).map((point) => `L${formatPoint(point)}`).join("")}`;
    })
    .join("");
}

/**
 * Builds the SVG path data of the area between two lines over the same x. Non-finite points leave
 * gaps.
 */
export function buildBandPath(low: readonly ChartPoint[], high: readonly ChartPoint[]): string {
  const pairs = high.map((top, index) =>
    isFinitePoint(top) && isFinitePoint(low[index]) ? top : ([NaN, NaN] as const),
  );
  let start = 0;
  return splitAtGaps(pairs)
    .map((tops) => {
      start = pairs.indexOf(tops[0], start);
      const bottoms = low.slice(start, start + tops.length);
      const outline = [...decimate(tops), ...decimate(bottoms).toReversed()];
      return `M${outline.map(formatPoint).join("L")}Z`;
    })
    .join("");
}

function splitAtGaps(points: readonly ChartPoint[]): ChartPoint[][] {
  const pieces: ChartPoint[][] = [[]];
  for (const point of points) {
    if (isFinitePoint(point)) pieces[pieces.length - 1].push(point);
    else pieces.push([]);
  }
  return pieces.filter((piece) => piece.length > 0);
}

function isFinitePoint([x, y]: ChartPoint): boolean {
  return Number.isFinite(x) && Number.isFinite(y);
}

/**
 * Keeps the first, lowest, highest and last point of each pixel column, which does not change the
 * picture.
 */
function decimate(points: readonly ChartPoint[]): readonly ChartPoint[] {
  const columns = new Map<number, ChartPoint[]>();
  for (const point of points) {
    const column = Math.floor(point[0]);
    const others = columns.get(column);
    if (others === undefined) columns.set(column, [point]);
    else others.push(point);
  }
  return [...columns.values()].flatMap((column) => (column.length <= 4 ? column : selectExtremes(column)));
}

function selectExtremes(column: readonly ChartPoint[]): ChartPoint[] {
  const heights = column.map(([, y]) => y);
  const lowest = heights.indexOf(Math.min(...heights));
  const highest = heights.indexOf(Math.max(...heights));
  const indices = new Set([0, lowest, highest, column.length - 1]);
  return column.filter((_, index) => indices.has(index));
}

function formatPoint([x, y]: ChartPoint): string {
  return `${roundToTenths(x)} ${roundToTenths(y)}`;
}

function roundToTenths(value: number): number {
  return Math.round(value * 10) / 10 + 0;
}
