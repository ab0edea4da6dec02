import type { RoomPosition, Layout } from "./level-builder.js";
import {
  areAdjacent,
  DROP,
  getCellAhead,
  getOffset,
  NO_OBJECT,
  PICK_UP,
  TOGGLE,
  type ColorName,
  type Kind,
  type World,
} from "./world.js";

/** Place of a thing as seen by the agent at the start. */
export type Side = "left" | "right" | "front" | "behind";

/** What a mission says about a thing; whatever is left out matches all. */
export interface Description {
  readonly kind?: Kind;
  readonly color?: ColorName;
  readonly side?: Side;
}

/** A task of one action. */
export type SingleMission =
  | { readonly type: "go to" | "pick up" | "open"; readonly target: Description }
  | { readonly type: "put"; readonly target: Description; readonly nextTo: Description };

/** One task, or a second after a first. */
export type Mission =
  | SingleMission
  | {
      readonly type: "sequence";
      readonly first: SingleMission;
      readonly second: SingleMission;
      /** "then" names the first task first, "after" the second. */
      readonly wording: "then" | "after";
    };

/**
 * The things that a description matched at the start, and their cells at the start or at the last
 * drop.
 */
export type Matches = {
  readonly things: readonly number[];
  readonly places: readonly number[];
};

/** A task in progress. */
export type SingleGoal = {
  readonly type: SingleMission["type"];
  readonly target: Matches;
  readonly nextTo?: Matches;
  /** What the agent carried when the goal was last verified. */
  readonly hands: number;
};

/** A mission in progress, as plain JSON. */
export type Goal =
  | SingleGoal
  | {
      readonly type: "sequence";
      readonly first: SingleGoal;
      readonly second: SingleGoal;
      readonly isFirstReached: boolean;
    };

/** Whether a description matches a thing in a cell. Sides refer to the agent's room. */
function matches(world: World, layout: Layout, { kind, color, side }: Description, cell: number): boolean {
  const thing = world.things[world.cells[cell]];
  if ((kind !== undefined && thing.kind !== kind) || (color !== undefined && thing.color !== color)) return false;
  if (side === undefined) return true;
  const { agent, width } = world;
  const [x, y] = [cell % width, Math.floor(cell / width)];
  if (!isInRoom(layout, [Math.floor(agent.x / (layout.size - 1)), Math.floor(agent.y / (layout.size - 1))], x, y))
    return false;
  const [dx, dy] = getOffset(agent.direction);
  const ahead = (x - agent.x) * dx + (y - agent.y) * dy;
  const right = (y - agent.y) * dx - (x - agent.x) * dy;
  return { left: right < 0, right: right > 0, front: ahead > 0, behind: ahead < 0 }[side];
}

/** Whether a cell is in a room or its walls. */
function isInRoom({ size }: Layout, [column, row]: RoomPosition, x: number, y: number): boolean {
  const [left, top] = [column * (size - 1), row * (size - 1)];
  return x >= left && x < left + size && y >= top && y < top + size;
}

/** Finds the things that a description matches, column by column. */
export function findMatches(world: World, layout: Layout, description: Description): Matches {
  const places = listCells(world).filter((cell) => matches(world, layout, description, cell));
  return { places, things: places.map((cell) => world.cells[cell]) };
}

/** Lists the cells that hold things, column by column. */
function listCells({ width, height, cells }: World): number[] {
  const all = Array.from({ length: width * height }, (_, i) => (i % height) * width + Math.floor(i / height));
  return all.filter((cell) => cells[cell] >= 0);
}

/** Starts to track a mission. */
export function startGoal(world: World, layout: Layout, mission: Mission): Goal {
  const start = (single: SingleMission): SingleGoal => ({
    type: single.type,
    target: findMatches(world, layout, single.target),
    ...(single.type === "put" ? { nextTo: findMatches(world, layout, single.nextTo) } : {}),
    hands: NO_OBJECT,
  });
  if (mission.type !== "sequence") return start(mission);
  return { type: "sequence", first: start(mission.first), second: start(mission.second), isFirstReached: false };
}

/**
 * Returns a goal after an action, and whether the action reached it. The places of things are
 * updated at drops.
 */
export function verifyGoal(goal: Goal, world: World, action: number): { goal: Goal; isReached: boolean } {
  if (goal.type !== "sequence") return verifySingle(action === DROP ? refresh(goal, world) : goal, world, action);
  const { first, second } =
    action === DROP ? { first: refresh(goal.first, world), second: refresh(goal.second, world) } : goal;
  if (!goal.isFirstReached) {
    const verified = verifySingle(first, world, action);
    if (!verified.isReached) return { goal: { ...goal, first: verified.goal, second }, isReached: false };
  }
  const verified = verifySingle(second, world, action);
  return { goal: { ...goal, first, second: verified.goal, isFirstReached: true }, isReached: verified.isReached };
}

function refresh(goal: SingleGoal, world: World): SingleGoal {
  const update = ({ things }: Matches): Matches => ({
    things,
    places: listCells(world).filter((cell) => things.includes(world.cells[cell])),
  });
  return { ...goal, target: update(goal.target), ...(goal.nextTo && { nextTo: update(goal.nextTo) }) };
}

function verifySingle(goal: SingleGoal, world: World, action: number): { goal: SingleGoal; isReached: boolean } {
  return { goal: { ...goal, hands: world.carrying }, isReached: isReached(goal, world, action) };
}

function isReached({ type, target, nextTo, hands }: SingleGoal, world: World, action: number): boolean {
  const ahead = getCellAhead(world, world.agent);
  switch (type) {
    case "go to":
      return target.places.includes(ahead);
    case "open": {
      const thing = world.cells[ahead];
      return action === TOGGLE && target.things.includes(thing) && world.things[thing].state === "open";
    }
    case "pick up":
      return action === PICK_UP && hands === NO_OBJECT && target.things.includes(world.carrying);
    case "put": {
      if (action !== DROP || !target.things.includes(hands)) return false;
      const cell = world.cells.indexOf(hands);
      return cell >= 0 && nextTo!.places.some((place) => areAdjacent(world, cell, place));
    }
  }
}

/**
 * Whether a task to put things together can be done: nothing matches both sides, and no pair is
 * adjacent yet.
 */
export function isPutValid(world: World, layout: Layout, mission: Mission): boolean {
  if (mission.type !== "put") return true;
  const target = findMatches(world, layout, mission.target);
  const nextTo = findMatches(world, layout, mission.nextTo);
  if (target.things.some((thing) => nextTo.things.includes(thing))) return false;
  return !target.places.some((a) => nextTo.places.some((b) => areAdjacent(world, a, b)));
}

const SIDE_WORDS: Readonly<Record<Side, string>> = {
  front: " in front of you",
  behind: " behind you",
  left: " on your left",
  right: " on your right",
};

/** Formats a mission as its sentence, with "a" where several things match. */
export function formatMission(world: World, layout: Layout, mission: Mission): string {
  const formatThing = (description: Description) => {
    const { kind = "object", color, side } = description;
    const article = findMatches(world, layout, description).things.length > 1 ? "a" : "the";
    return `${article} ${color === undefined ? "" : `${color} `}${kind}${side === undefined ? "" : SIDE_WORDS[side]}`;
  };
  const formatSingle = (single: SingleMission) => {
    const { type, target } = single;
    return type === "put"
      ? `put ${formatThing(target)} next to ${formatThing(single.nextTo)}`
      : `${type} ${formatThing(target)}`;
  };
  if (mission.type !== "sequence") return formatSingle(mission);
  const [first, second] = [formatSingle(mission.first), formatSingle(mission.second)];
  return mission.wording === "then" ? `${first}, then ${second}` : `${second} after you ${first}`;
}

/** Returns the number of rooms' worth of steps that a mission is given. */
export function countNavigations(mission: Mission): number {
  if (mission.type === "sequence") return countNavigations(mission.first) + countNavigations(mission.second);
  return mission.type === "put" ? 2 : 1;
}
