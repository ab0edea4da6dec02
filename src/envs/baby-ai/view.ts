import { COLORS, DOOR_STATES, getOffset, NO_OBJECT, WALL, type ColorName, type Kind, type World } from "./world.js";

/** What the agent sees: minigrid's observation. */
export interface BabyAiObservation {
  /** Type, color and state of each cell in view, by column and row. */
  readonly image: Uint8Array;
  /** 0 right, 1 down, 2 left, 3 up. */
  readonly direction: number;
  readonly mission: string;
}

/** Rows and columns of the view; the agent is in the middle of the last row and faces up. */
export const VIEW_SIZE = 7;
const MIDDLE = 3;
const TYPES = { empty: 1, wall: 2, door: 4, key: 5, ball: 6, box: 7 } as const;
const KINDS: ReadonlyMap<number, Kind> = new Map(
  (["door", "key", "ball", "box"] as const).map((kind) => [TYPES[kind], kind]),
);
const WALL_CODE = [TYPES.wall, COLORS.indexOf("grey"), 0];

/**
 * Returns what the agent sees: type, color and state of each cell by column and row; 0 where it
 * sees nothing.
 */
export function observe(world: World): Uint8Array {
  const image = new Uint8Array(VIEW_SIZE * VIEW_SIZE * 3);
  const seen = findVisible(world);
  for (let i = 0; i < VIEW_SIZE * VIEW_SIZE; i++) {
    const [column, row] = [Math.floor(i / VIEW_SIZE), i % VIEW_SIZE];
    if (seen[i]) image.set(encodeCell(world, column === MIDDLE && row === VIEW_SIZE - 1, column, row), 3 * i);
  }
  return image;
}

function encodeCell(world: World, isAgent: boolean, column: number, row: number): readonly number[] {
  const content = isAgent ? world.carrying : getContent(world, column, row);
  if (content === WALL) return WALL_CODE;
  if (content === NO_OBJECT) return [TYPES.empty, 0, 0];
  const { kind, color, state } = world.things[content];
  return [TYPES[kind], COLORS.indexOf(color), state === undefined ? 0 : DOOR_STATES.indexOf(state)];
}

/** Returns the content of a cell of the view; beyond the grid is wall. */
function getContent({ agent, width, height, cells }: World, column: number, row: number): number {
  const [dx, dy] = getOffset(agent.direction);
  const [ahead, right] = [VIEW_SIZE - 1 - row, column - MIDDLE];
  const x = agent.x + ahead * dx - right * dy;
  const y = agent.y + ahead * dy + right * dx;
  return x < 0 || y < 0 || x >= width || y >= height ? WALL : cells[y * width + x];
}

/**
 * Returns which cells of the view are visible, by column and row: light spreads row by row away
 * from the agent.
 */
function findVisible(world: World): boolean[] {
  const lit = Array.from({ length: VIEW_SIZE * VIEW_SIZE }, () => false);
  lit[MIDDLE * VIEW_SIZE + VIEW_SIZE - 1] = true;
  const spread = (column: number, row: number, step: number) => {
    if (!lit[column * VIEW_SIZE + row]) return;
    const content = getContent(world, column, row);
    if (content === WALL || (world.things[content]?.state ?? "open") !== "open") return;
    lit[(column + step) * VIEW_SIZE + row] = true;
    if (row === 0) return;
    lit[(column + step) * VIEW_SIZE + row - 1] = true;
    lit[column * VIEW_SIZE + row - 1] = true;
  };
  for (let row = VIEW_SIZE - 1; row >= 0; row--) {
    for (let column = 0; column < VIEW_SIZE - 1; column++) spread(column, row, 1);
    for (let column = VIEW_SIZE - 1; column > 0; column--) spread(column, row, -1);
  }
  return lit;
}

/** A thing in view. */
export interface Sight {
  readonly kind: Kind;
  readonly color: ColorName;
  /** State of a door. */
  readonly state?: (typeof DOOR_STATES)[number];
  readonly ahead: number;
  /** Columns to the right, negative to the left. */
  readonly right: number;
}

/** What an image shows, in the order of BabyAI-Text's sentences. */
export interface GridScene {
  readonly carrying?: Pick<Sight, "kind" | "color">;
  /** Distances of the walls with nothing in between. */
  readonly walls: { readonly ahead?: number; readonly left?: number; readonly right?: number };
  readonly things: readonly Sight[];
}

/** Reads the things and walls from an image. */
export function readScene(image: Uint8Array): GridScene {
  const getType = (column: number, row: number) => image[(column * VIEW_SIZE + row) * 3];
  const measureWall = (stepColumn: number, stepRow: number): number | undefined => {
    for (let distance = 1; ; distance++) {
      const [column, row] = [MIDDLE + distance * stepColumn, VIEW_SIZE - 1 + distance * stepRow];
      if (column < 0 || column >= VIEW_SIZE || row < 0) return undefined;
      if (getType(column, row) === TYPES.wall) return distance;
      if (getType(column, row) !== TYPES.empty) return undefined;
    }
  };
  const sights = Array.from({ length: VIEW_SIZE * VIEW_SIZE }, (_, i): Sight | undefined => {
    const kind = KINDS.get(image[3 * i]);
    if (kind === undefined) return undefined;
    const color = COLORS[image[3 * i + 1]];
    const place = { ahead: VIEW_SIZE - 1 - (i % VIEW_SIZE), right: Math.floor(i / VIEW_SIZE) - MIDDLE };
    return { kind, color, ...(kind === "door" ? { state: DOOR_STATES[image[3 * i + 2]] } : {}), ...place };
  });
  const isInHands = ({ ahead, right }: Sight) => ahead === 0 && right === 0;
  const seen = sights.filter((sight) => sight !== undefined);
  return {
    carrying: seen.find(isInHands),
    walls: { ahead: measureWall(0, -1), left: measureWall(-1, 0), right: measureWall(1, 0) },
    things: seen.filter((sight) => !isInHands(sight)),
  };
}
