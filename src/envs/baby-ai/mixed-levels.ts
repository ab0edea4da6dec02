import { type LevelBuilder, type RoomPosition } from "./level-builder.js";
import { formatMission, type Description, type Mission } from "./mission.js";
import type { ColorName } from "./world.js";

/** Kinds of tasks in GLAM's mixed levels, by its names. */
export const MIXED_KINDS = ["goto", "pickup", "open", "putnext", "pick up seq go to"] as const;
export type MixedKind = (typeof MIXED_KINDS)[number];

/** Sentences with one of these are kept for the test level. */
const TEST_PAIRS = ["yellow box", "red key", "red door", "green ball", "grey door"];
const DISTRACTORS = 8;

/**
 * Draws the things of a task of GLAM's mixed levels, without the check whether its sentence is for
 * training or test.
 */
export function buildMixed(level: LevelBuilder, kind: MixedKind, isTest: boolean): Mission {
  switch (kind) {
    case "open":
      return buildOpen(level, isTest);
    case "goto":
    case "pickup": {
      level.placeAgent();
      const target = describe(level, level.pick(level.clutter(DISTRACTORS + 1, { unique: false })));
      return { type: kind === "goto" ? "go to" : "pick up", target };
    }
    case "putnext": {
      const [target, nextTo] = pickPair(level);
      return { type: "put", target, nextTo };
    }
    case "pick up seq go to": {
      const [first, second] = pickPair(level);
      const wording = level.pick(["then", "after"] as const);
      return {
        type: "sequence",
        first: { type: "pick up", target: first },
        second: { type: "go to", target: second },
        wording,
      };
    }
  }
}

/** Whether everything is reachable and the sentence belongs to the level. */
export function isMixedValid(level: LevelBuilder, mission: Mission, isTest: boolean): boolean {
  if (!level.isEverythingReachable()) return false;
  const sentence = formatMission(level.world, level.layout, mission);
  const things = sentence.match(/\w+ (?:key|ball|box|door)\b/g) ?? [];
  return isTest
    ? things.every((thing) => TEST_PAIRS.includes(thing))
    : !TEST_PAIRS.some((thing) => sentence.includes(thing));
}

function describe(level: LevelBuilder, number: number): Description {
  const { kind, color } = level.things[number];
  return { kind, color };
}

/** A locked door between two rooms, its key in the agent's. */
function buildOpen(level: LevelBuilder, isTest: boolean): Mission {
  const color = level.pick<ColorName>(isTest ? ["red", "grey"] : ["yellow", "green", "blue", "purple"]);
  const [locked, side] = pickRoomSide(level);
  level.addDoor(locked, { side, color, isLocked: true });
  let other: RoomPosition;
  do other = level.pickRoom();
  while (other[0] === locked[0] && other[1] === locked[1]);
  level.placeObject({ kind: "key", color }, other);
  level.clutter(DISTRACTORS, { unique: false, room: other });
  do level.placeAgent();
  while (level.isLocked(level.agentRoom));
  const isNamed = isTest || level.pick([false, true]);
  return { type: "open", target: isNamed ? { kind: "door", color } : { kind: "door" } };
}

/** Draws a room and a side of it together, until there is a neighbor. */
function pickRoomSide(level: LevelBuilder): [RoomPosition, number] {
  for (;;) {
    const room = level.pickRoom();
    const side = level.int(0, 4);
    if (level.hasNeighbor(room, side)) return [room, side];
  }
}

/** Places the agent and things, and draws two of them, equal ones only where several are equal. */
function pickPair(level: LevelBuilder): [Description, Description] {
  level.placeAgent();
  const clutter = level.clutter(DISTRACTORS + 2, { unique: false }).map((number) => describe(level, number));
  const isEqual = (a: Description, b: Description) => a.kind === b.kind && a.color === b.color;
  const first = level.pick(clutter);
  const isUnique = clutter.filter((thing) => isEqual(thing, first)).length === 1;
  for (;;) {
    const second = level.pick(clutter);
    if (!isUnique || !isEqual(second, first)) return [first, second];
  }
}
