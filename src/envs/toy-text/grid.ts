/** A move on a grid, rows counted downwards. */
export type Move = readonly [down: number, right: number];

/** Returns the position after a move, clipped to the grid. */
export function moveWithin(
  row: number,
  column: number,
  [down, right]: Move,
  rows: number,
  columns: number,
): [row: number, column: number] {
  return [Math.min(Math.max(row + down, 0), rows - 1), Math.min(Math.max(column + right, 0), columns - 1)];
}

/** Creates `count` values from their index. */
export function tabulate<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
