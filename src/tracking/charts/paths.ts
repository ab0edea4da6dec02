/** A place in the picture, in its units. */
export type Point = readonly [x: number, y: number];

/** A line through points, as SVG path data; a point that is not finite leaves a gap, a point alone is a dot. */
export function linePath(points: readonly Point[]): string {
  return piecesOf(points)
    .map((piece) => {
      const [first, ...others] = thinned(piece);
      return `M${write(first)}${(others.length === 0 ? [first] : others).map((point) => `L${write(point)}`).join("")}`;
    })
    .join("");
}

/** The area between two lines over the same x; where either is not finite it has a gap. */
export function bandPath(low: readonly Point[], high: readonly Point[]): string {
  const pairs = high.map((top, index) => (isFinite(top) && isFinite(low[index]) ? top : ([NaN, NaN] as const)));
  let at = 0;
  return piecesOf(pairs)
    .map((tops) => {
      at = pairs.indexOf(tops[0], at);
      const bottoms = low.slice(at, at + tops.length);
      const outline = [...thinned(tops), ...thinned(bottoms).toReversed()];
      return `M${outline.map(write).join("L")}Z`;
    })
    .join("");
}

function piecesOf(points: readonly Point[]): Point[][] {
  const pieces: Point[][] = [[]];
  for (const point of points) {
    if (isFinite(point)) pieces[pieces.length - 1].push(point);
    else pieces.push([]);
  }
  return pieces.filter((piece) => piece.length > 0);
}

function isFinite([x, y]: Point): boolean {
  return Number.isFinite(x) && Number.isFinite(y);
}

/** Of the points that share a column of the picture, the first, the lowest, the highest and the last: it looks the same. */
function thinned(points: readonly Point[]): readonly Point[] {
  const columns = new Map<number, Point[]>();
  for (const point of points) {
    const column = Math.floor(point[0]);
    const others = columns.get(column);
    if (others === undefined) columns.set(column, [point]);
    else others.push(point);
  }
  return [...columns.values()].flatMap((column) => (column.length <= 4 ? column : extremes(column)));
}

function extremes(column: readonly Point[]): Point[] {
  const heights = column.map(([, y]) => y);
  const lowest = heights.indexOf(Math.min(...heights));
  const highest = heights.indexOf(Math.max(...heights));
  const kept = new Set([0, lowest, highest, column.length - 1]);
  return column.filter((_, index) => kept.has(index));
}

function write([x, y]: Point): string {
  return `${tenths(x)} ${tenths(y)}`;
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10 + 0;
}
