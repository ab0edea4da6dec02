import { moveWithin, tabulate, type Move } from "./tabular-env.js";

export const CLIFF_ROWS = 4;
export const CLIFF_COLUMNS = 12;
/** The lower left corner; the goal is the lower right one. */
export const CLIFF_START = (CLIFF_ROWS - 1) * CLIFF_COLUMNS;
export const CLIFF_GOAL = CLIFF_ROWS * CLIFF_COLUMNS - 1;

/** Returns whether a state is in the cliff, between start and goal. */
export const isCliff = (state: number) => state > CLIFF_START && state < CLIFF_GOAL;

/** Walls are bars, open borders colons; R, G, Y and B are the stops. */
export const TAXI_MAP = [
  "+---------+",
  "|R: | : :G|",
  "| : | : : |",
  "| : : : : |",
  "| | : | : |",
  "|Y| : |B: |",
  "+---------+",
];
export const TAXI_SIZE = 5;
/** The stops' names and places, in the order that states count them. */
export const STOPS = ["R", "G", "Y", "B"];
export const STOP_POSITIONS: readonly (readonly [row: number, column: number])[] = [
  [0, 0],
  [0, 4],
  [4, 0],
  [4, 3],
];
/** Passenger location inside the taxi. */
export const IN_TAXI = 4;
export const NUM_TAXI_STATES = TAXI_SIZE * TAXI_SIZE * (STOPS.length + 1) * STOPS.length;
/** South, north, east, west; then come pick up and drop off. */
export const TAXI_MOVES: readonly Move[] = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
];
export const PICK_UP = 4;
export const DROP_OFF = 5;

export interface TaxiState {
  readonly row: number;
  readonly column: number;
  /** A stop, or IN_TAXI. */
  readonly passenger: number;
  readonly destination: number;
}

export function encodeState({ row, column, passenger, destination }: TaxiState): number {
  return ((row * TAXI_SIZE + column) * (STOPS.length + 1) + passenger) * STOPS.length + destination;
}

export function decodeState(state: number): TaxiState {
  const destination = state % STOPS.length;
  const rest = Math.floor(state / STOPS.length);
  const passenger = rest % (STOPS.length + 1);
  const cell = Math.floor(rest / (STOPS.length + 1));
  return { row: Math.floor(cell / TAXI_SIZE), column: cell % TAXI_SIZE, passenger, destination };
}

/** Returns the stop at a position, or -1. */
export function findStop(row: number, column: number): number {
  return STOP_POSITIONS.findIndex(([stopRow, stopColumn]) => stopRow === row && stopColumn === column);
}

/** Returns whether a move is not blocked by a wall or the edge. */
export function canMove(row: number, column: number, [down, right]: Move): boolean {
  if (row + down < 0 || row + down >= TAXI_SIZE) return false;
  return right === 0 || TAXI_MAP[1 + row][2 * column + 1 + right] === ":";
}

/** Returns the position after a move, unchanged if it is blocked. */
export function applyMove(row: number, column: number, move: Move): [row: number, column: number] {
  return canMove(row, column, move) ? moveWithin(row, column, move, TAXI_SIZE, TAXI_SIZE) : [row, column];
}

const ACTION_MASKS = tabulate(NUM_TAXI_STATES, (state) => {
  const { row, column, passenger } = decodeState(state);
  const stop = findStop(row, column);
  const isPossible = [
    ...TAXI_MOVES.map((move) => canMove(row, column, move)),
    passenger !== IN_TAXI && stop === passenger,
    passenger === IN_TAXI && stop >= 0,
  ];
  return Int8Array.from(isPossible, Number);
});

/** Mask of the actions that have an effect. */
export function getActionMask(state: number): Int8Array {
  return ACTION_MASKS[state].slice();
}
