import { invalidArgument } from "../../core/errors.js";

/** Colors in the order of their numbers in observations. */
export const COLORS = ["red", "green", "blue", "purple", "yellow", "grey"] as const;
export type ColorName = (typeof COLORS)[number];

/** Kinds of things that levels place. */
export type Kind = "door" | "key" | "ball" | "box";

/** States of a door, in the order of their numbers in observations. */
export const DOOR_STATES = ["open", "closed", "locked"] as const;
export type DoorState = (typeof DOOR_STATES)[number];

export type WorldObject = {
  readonly kind: Kind;
  readonly color: ColorName;
  /** State of a door. */
  readonly state?: DoorState;
  /** Number of the thing inside a box. */
  readonly contents?: number;
};

export type GridAgent = {
  readonly x: number;
  readonly y: number;
  /** 0 right, 1 down, 2 left, 3 up. */
  readonly direction: number;
};

/** Content of a cell that holds no thing; other cells hold the number of a thing. */
export const EMPTY = -1;
export const WALL = -2;
/** Hands that hold nothing. */
export const NO_OBJECT = -1;

/** The grid, x to the right and y down, as plain JSON. */
export type World = {
  readonly width: number;
  readonly height: number;
  /** Content of each cell, row by row. */
  readonly cells: readonly number[];
  readonly things: readonly WorldObject[];
  readonly agent: GridAgent;
  /** Number of the carried thing, or NO_OBJECT. */
  readonly carrying: number;
};

/** Names of the actions in their order. */
export const ACTIONS = ["left", "right", "forward", "pick up", "drop", "toggle"] as const;
export const [LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE] = ACTIONS.keys();

const OFFSETS = [
  [1, 0],
  [0, 1],
  [-1, 0],
  [0, -1],
] as const;

/** Returns the step in a direction, as columns and rows. */
export function getOffset(direction: number): readonly [x: number, y: number] {
  return OFFSETS[direction];
}

/** Returns the number of the cell ahead of an agent. */
export function getCellAhead({ width }: World, { x, y, direction }: GridAgent): number {
  const [dx, dy] = OFFSETS[direction];
  return (y + dy) * width + x + dx;
}

/** Whether the agent can enter a cell: an empty one, or an open door. */
export function isPassable({ cells, things }: World, cell: number): boolean {
  return cells[cell] === EMPTY || (cells[cell] >= 0 && things[cells[cell]].state === "open");
}

/** Whether two cells share an edge. */
export function areAdjacent({ width }: World, a: number, b: number): boolean {
  return Math.abs((a % width) - (b % width)) + Math.abs(Math.floor(a / width) - Math.floor(b / width)) === 1;
}

/** Returns the world after an action. */
export function applyAction(world: World, action: number): World {
  const { agent } = world;
  switch (action) {
    case LEFT:
      return { ...world, agent: { ...agent, direction: (agent.direction + 3) % 4 } };
    case RIGHT:
      return { ...world, agent: { ...agent, direction: (agent.direction + 1) % 4 } };
    case FORWARD:
      return moveForward(world);
    case PICK_UP:
      return pickUp(world);
    case DROP:
      return drop(world);
    case TOGGLE:
      return toggle(world);
    default:
      throw invalidArgument(`BabyAI has no action ${action}.`);
  }
}

function moveForward(world: World): World {
  const { agent } = world;
  if (!isPassable(world, getCellAhead(world, agent))) return world;
  const [dx, dy] = OFFSETS[agent.direction];
  return { ...world, agent: { ...agent, x: agent.x + dx, y: agent.y + dy } };
}

function pickUp(world: World): World {
  const ahead = getCellAhead(world, world.agent);
  const thing = world.cells[ahead];
  if (world.carrying !== NO_OBJECT || thing < 0 || world.things[thing].kind === "door") return world;
  return { ...world, carrying: thing, cells: world.cells.with(ahead, EMPTY) };
}

function drop(world: World): World {
  const ahead = getCellAhead(world, world.agent);
  if (world.carrying === NO_OBJECT || world.cells[ahead] !== EMPTY) return world;
  return { ...world, carrying: NO_OBJECT, cells: world.cells.with(ahead, world.carrying) };
}

/** Opens or closes the door ahead, or replaces the box ahead by its contents. */
function toggle(world: World): World {
  const { cells, things, carrying } = world;
  const ahead = getCellAhead(world, world.agent);
  const number = cells[ahead];
  if (number < 0) return world;
  const thing = things[number];
  if (thing.kind === "box") return { ...world, cells: cells.with(ahead, thing.contents ?? EMPTY) };
  if (thing.kind !== "door") return world;
  const key = carrying === NO_OBJECT ? undefined : things[carrying];
  if (thing.state === "locked" && !(key?.kind === "key" && key.color === thing.color)) return world;
  return { ...world, things: things.with(number, { ...thing, state: thing.state === "open" ? "closed" : "open" }) };
}
