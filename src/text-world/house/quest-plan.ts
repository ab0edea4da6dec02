import type { RandomStream } from "../../core/random/random-stream.js";
import { type Direction, computeDistances, listExits, type Connection, OPPOSITE } from "./house-map.js";

/** Object kinds: container, supporter, object, key, food. */
export type ObjectKind = "c" | "s" | "o" | "k" | "f";

/** Something that the quest needs; `opens` is what a key fits. */
export interface GameObject {
  readonly kind: ObjectKind;
  readonly opens?: GameObject | Connection;
}

/** One command of the quest. */
export type QuestStep =
  | { readonly verb: "go"; readonly direction: Direction; readonly to: number }
  | {
      readonly verb: keyof typeof PREPOSITIONS;
      readonly object: GameObject | Connection;
      readonly preposition: string;
      readonly other: GameObject | undefined;
    };

/** The verbs of commands with objects, each with its preposition. */
export const PREPOSITIONS = {
  take: "from",
  put: "on",
  insert: "into",
  unlock: "with",
  lock: "with",
  open: "",
  close: "",
  eat: "",
  drop: "",
  examine: "",
} as const;

function createStep(verb: keyof typeof PREPOSITIONS, object: GameObject | Connection, other?: GameObject): QuestStep {
  return { verb, object, preposition: PREPOSITIONS[verb], other };
}

/** States of a door or container. */
export const LOCK_STATES = ["open", "closed", "locked"] as const;
export type LockState = (typeof LOCK_STATES)[number];

/** A quest of a given length, and how the world must be for it to start. */
export interface QuestPlan {
  readonly start: number;
  readonly steps: readonly QuestStep[];
  /** Where each portable thing is at first: in the player's hands, or in a room, perhaps in or on something there. */
  readonly locations: ReadonlyMap<GameObject, GameObject | number | "hands">;
  /** Where the containers and supporters are. */
  readonly furniture: ReadonlyMap<GameObject, number>;
  readonly locks: ReadonlyMap<GameObject | Connection, LockState>;
  /** Connections that the quest passes. */
  readonly usedConnections: ReadonlySet<Connection>;
}

/** How the world must be before the steps found so far, worked out from the end of the quest to its start. */
interface PartialPlan {
  readonly room: number;
  /** What must be in the player's hands, and has not been taken yet. */
  readonly neededObjects: readonly GameObject[];
  /** What must be open or unlocked here, and has not been seen to yet. */
  readonly barrier: { readonly target: GameObject | Connection; readonly needs: "open" | "closed" } | undefined;
  /** The room of the next thing to do: ways lead straight there. */
  readonly anchor: number;
  readonly steps: readonly QuestStep[];
  readonly locations: ReadonlyMap<GameObject, GameObject | number>;
  readonly furniture: ReadonlyMap<GameObject, number>;
  readonly locks: ReadonlyMap<GameObject | Connection, LockState>;
  readonly usedConnections: ReadonlySet<Connection>;
}

interface PlanOption {
  readonly weight: number;
  readonly next: () => PartialPlan;
}

/** Attempts after which a quest of this length counts as impossible. */
const MAX_ATTEMPTS = 20_000;
const FOOD_PROBABILITY = 0.25;

/**
 * A quest of exactly `length` commands, each of which is needed: built from its last command backwards, a command at a
 * time that brings about what a later one needs. Undefined when there is none on this map.
 */
export function generateQuestPlan(
  rooms: number,
  connections: readonly Connection[],
  length: number,
  random: RandomStream,
): QuestPlan | undefined {
  let attempts = 0;
  const extend = (partial: PartialPlan): PartialPlan | undefined => {
    if (partial.steps.length >= length) return partial.steps.length === length ? partial : undefined;
    for (const option of shuffleByWeight(listOptions(partial, rooms, connections), random)) {
      if (++attempts > MAX_ATTEMPTS) return undefined;
      const found = extend(option.next());
      if (found !== undefined) return found;
    }
    return undefined;
  };
  // Food is carried about too, and lost when it is eaten on the way.
  const object: GameObject = { kind: random.random() < FOOD_PROBABILITY ? "f" : "o" };
  for (const goal of shuffleByWeight(listGoals(random.integers(rooms), object), random)) {
    const partial = extend(goal.next());
    if (partial !== undefined) return finishPlan(partial);
  }
  return undefined;
}

function listGoals(room: number, object: GameObject): PlanOption[] {
  const empty: PartialPlan = {
    room,
    neededObjects: [],
    barrier: undefined,
    anchor: room,
    steps: [],
    locations: new Map(),
    furniture: new Map(),
    locks: new Map(),
    usedConnections: new Set(),
  };
  const food: GameObject = { kind: "f" };
  const table: GameObject = { kind: "s" };
  const box: GameObject = { kind: "c" };
  return [
    { weight: 3, next: () => ({ ...empty, neededObjects: [object] }) },
    {
      weight: 2,
      next: () => ({
        ...empty,
        neededObjects: [object],
        steps: [createStep("put", object, table)],
        furniture: new Map([[table, room]]),
      }),
    },
    {
      weight: 2,
      next: () => ({
        ...empty,
        neededObjects: [object],
        barrier: { target: box, needs: "open" },
        steps: [createStep("insert", object, box)],
        furniture: new Map([[box, room]]),
      }),
    },
    { weight: 1, next: () => ({ ...empty, neededObjects: [food], steps: [createStep("eat", food)] }) },
  ];
}

/** What could have been done just before. */
function listOptions(partial: PartialPlan, rooms: number, connections: readonly Connection[]): PlanOption[] {
  const { barrier } = partial;
  const options: PlanOption[] = partial.neededObjects.flatMap((thing) => listTakeOptions(partial, thing));
  if (barrier?.needs === "open") options.push({ weight: 4, next: () => prependOpen(partial, barrier.target) });
  if (barrier?.needs === "closed") options.push({ weight: 2, next: () => prependUnlock(partial, barrier.target) });
  // A quest whose last command is not known yet ends where it is.
  if (partial.steps.length > 0) options.push(...listMoveOptions(partial, rooms, connections));
  return options;
}

function listTakeOptions(partial: PartialPlan, thing: GameObject): PlanOption[] {
  const afterTaking = (from: GameObject | undefined, barrier: PartialPlan["barrier"]): PartialPlan => ({
    ...partial,
    anchor: partial.room,
    barrier,
    neededObjects: partial.neededObjects.filter((other) => other !== thing),
    steps: [createStep("take", thing, from), ...partial.steps],
    locations: new Map(partial.locations).set(thing, from ?? partial.room),
    furniture: from === undefined ? partial.furniture : new Map(partial.furniture).set(from, partial.room),
  });
  const supporter: GameObject = { kind: "s" };
  const container: GameObject = { kind: "c" };
  const options = [
    { weight: 1, next: () => afterTaking(undefined, partial.barrier) },
    { weight: 1, next: () => afterTaking(supporter, partial.barrier) },
  ];
  // One barrier at a time: what is still in the way here is seen to first.
  if (partial.barrier === undefined) {
    options.push({ weight: 2, next: () => afterTaking(container, { target: container, needs: "open" }) });
  }
  return options;
}

function prependOpen(partial: PartialPlan, target: GameObject | Connection): PartialPlan {
  return {
    ...partial,
    barrier: { target, needs: "closed" },
    anchor: partial.room,
    steps: [createStep("open", target), ...partial.steps],
    locks: new Map(partial.locks).set(target, "closed"),
  };
}

function prependUnlock(partial: PartialPlan, target: GameObject | Connection): PartialPlan {
  const key: GameObject = { kind: "k", opens: target };
  return {
    ...partial,
    barrier: undefined,
    anchor: partial.room,
    neededObjects: [...partial.neededObjects, key],
    steps: [createStep("unlock", target, key), ...partial.steps],
    locks: new Map(partial.locks).set(target, "locked"),
  };
}

/** Coming from a room that is one farther from where the next thing is to be done. */
function listMoveOptions(partial: PartialPlan, rooms: number, connections: readonly Connection[]): PlanOption[] {
  // A door that the quest opens later is still closed.
  const passable = connections.filter((joint) => !partial.locks.has(joint));
  const distances = computeDistances(partial.anchor, passable, rooms);
  return listExits(partial.room, passable)
    .filter(({ to }) => distances[to] === distances[partial.room] + 1)
    .flatMap(({ to, direction, joint }) => {
      const createPlan = (barrier: PartialPlan["barrier"]): PartialPlan => ({
        ...partial,
        room: to,
        barrier,
        steps: [{ verb: "go", direction: OPPOSITE[direction], to: partial.room }, ...partial.steps],
        usedConnections: new Set(partial.usedConnections).add(joint),
      });
      const options: PlanOption[] = [{ weight: 3, next: () => createPlan(undefined) }];
      // Passed already (later in the quest), it must have been open.
      if (joint.isBridge && !partial.usedConnections.has(joint)) {
        options.push({ weight: 2, next: () => createPlan({ target: joint, needs: "open" }) });
      }
      return options;
    });
}

function finishPlan(partial: PartialPlan): QuestPlan {
  const locations = new Map<GameObject, GameObject | number | "hands">(partial.locations);
  for (const thing of partial.neededObjects) locations.set(thing, "hands");
  return { ...partial, start: partial.room, locations };
}

/** The options in random order, heavier ones more likely first. */
function shuffleByWeight(options: readonly PlanOption[], random: RandomStream): PlanOption[] {
  return options
    .map((option) => ({ option, rank: random.random() ** (1 / option.weight) }))
    .sort((a, b) => b.rank - a.rank)
    .map(({ option }) => option);
}
