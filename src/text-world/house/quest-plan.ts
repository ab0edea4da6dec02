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

/** The world before a quest. */
interface QuestWorld {
  /** The containers and supporters by room. */
  readonly furniture: ReadonlyMap<GameObject, number>;
  readonly locks: ReadonlyMap<GameObject | Connection, LockState>;
  /** Connections that the quest passes. */
  readonly usedConnections: ReadonlySet<Connection>;
  readonly steps: readonly QuestStep[];
}

/** A quest of a given length. */
export interface QuestPlan extends QuestWorld {
  readonly start: number;
  /**
   * Where each portable object is: in the player's hands, or in a room, perhaps in or on something
   * there.
   */
  readonly locations: ReadonlyMap<GameObject, GameObject | number | "hands">;
}

/** The world before the steps found so far, from the end of the quest to its start. */
interface PartialPlan extends QuestWorld {
  readonly room: number;
  /** Objects that must be in the player's hands, and are not taken by a step. */
  readonly neededObjects: readonly GameObject[];
  /** What must be open or unlocked here, and is not opened by a step. */
  readonly barrier: { readonly target: GameObject | Connection; readonly needs: "open" | "closed" } | undefined;
  /** The room of the next step, to which the shortest way leads. */
  readonly anchor: number;
  readonly locations: ReadonlyMap<GameObject, GameObject | number>;
}

type PlanOption = readonly [weight: number, plan: PartialPlan];

/** Attempts after which a quest of this length counts as impossible. */
const MAX_ATTEMPTS = 20_000;
const FOOD_PROBABILITY = 0.25;

/**
 * Generates a quest of exactly `length` commands, each of which is needed: from its last command
 * backwards, by commands that make a later one possible. Undefined if there is none on this map.
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
      const found = extend(option);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  // Quests may carry food, which is lost if it is eaten on the way.
  const object: GameObject = { kind: random.random() < FOOD_PROBABILITY ? "f" : "o" };
  for (const goal of shuffleByWeight(listGoals(random.integers(rooms), object), random)) {
    const plan = extend(goal);
    if (plan === undefined) continue;
    const locations: Map<GameObject, GameObject | number | "hands"> = new Map(plan.locations);
    for (const needed of plan.neededObjects) locations.set(needed, "hands");
    return { ...plan, start: plan.room, locations };
  }
  return undefined;
}

function listGoals(room: number, object: GameObject): PlanOption[] {
  const plan: PartialPlan = {
    room,
    neededObjects: [object],
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
  const insertion = { barrier: { target: box, needs: "open" }, steps: [createStep("insert", object, box)] } as const;
  return [
    [3, plan],
    [2, { ...plan, steps: [createStep("put", object, table)], furniture: new Map([[table, room]]) }],
    [2, { ...plan, ...insertion, furniture: new Map([[box, room]]) }],
    [1, { ...plan, neededObjects: [food], steps: [createStep("eat", food)] }],
  ];
}

/** Lists the worlds in which the player could have been just before. */
function listOptions(partial: PartialPlan, rooms: number, connections: readonly Connection[]): PlanOption[] {
  const { barrier } = partial;
  const options = partial.neededObjects.flatMap((needed) => listTakeOptions(partial, needed));
  if (barrier?.needs === "open") options.push([4, prependOpen(partial, barrier.target)]);
  if (barrier?.needs === "closed") options.push([2, prependUnlock(partial, barrier.target)]);
  // A quest without a last command ends where it is.
  if (partial.steps.length > 0) options.push(...listMoveOptions(partial, rooms, connections));
  return options;
}

function prepend(partial: PartialPlan, step: QuestStep, changes: Partial<PartialPlan>): PartialPlan {
  return { ...partial, anchor: partial.room, ...changes, steps: [step, ...partial.steps] };
}

function listTakeOptions(partial: PartialPlan, object: GameObject): PlanOption[] {
  const prependTake = (from: GameObject | undefined, barrier = partial.barrier) =>
    prepend(partial, createStep("take", object, from), {
      barrier,
      neededObjects: partial.neededObjects.filter((other) => other !== object),
      locations: new Map(partial.locations).set(object, from ?? partial.room),
      furniture: from === undefined ? partial.furniture : new Map(partial.furniture).set(from, partial.room),
    });
  const container: GameObject = { kind: "c" };
  const options: PlanOption[] = [
    [1, prependTake(undefined)],
    [1, prependTake({ kind: "s" })],
  ];
  // One barrier at a time.
  if (partial.barrier === undefined) options.push([2, prependTake(container, { target: container, needs: "open" })]);
  return options;
}

function prependOpen(partial: PartialPlan, target: GameObject | Connection): PartialPlan {
  const locks = new Map(partial.locks).set(target, "closed");
  return prepend(partial, createStep("open", target), { barrier: { target, needs: "closed" }, locks });
}

function prependUnlock(partial: PartialPlan, target: GameObject | Connection): PartialPlan {
  const key: GameObject = { kind: "k", opens: target };
  return prepend(partial, createStep("unlock", target, key), {
    barrier: undefined,
    neededObjects: [...partial.neededObjects, key],
    locks: new Map(partial.locks).set(target, "locked"),
  });
}

/** Lists the ways from rooms that are one farther from the next step. */
function listMoveOptions(partial: PartialPlan, rooms: number, connections: readonly Connection[]): PlanOption[] {
  const { room, anchor, locks, usedConnections } = partial;
  // A door that the quest opens later is still closed.
  const passable = connections.filter((connection) => !locks.has(connection));
  const distances = computeDistances(anchor, passable, rooms);
  const exits = listExits(room, passable).filter(({ to }) => distances[to] === distances[room] + 1);
  return exits.flatMap(({ to, direction, connection }) => {
    const step: QuestStep = { verb: "go", direction: OPPOSITE[direction], to: room };
    const used = { room: to, anchor, usedConnections: new Set(usedConnections).add(connection) };
    const options: PlanOption[] = [[3, prepend(partial, step, { ...used, barrier: undefined })]];
    // A connection that is passed later must have been open.
    if (connection.isBridge && !usedConnections.has(connection))
      options.push([2, prepend(partial, step, { ...used, barrier: { target: connection, needs: "open" } })]);
    return options;
  });
}

/** Returns the options in random order, heavier ones more likely first. */
function shuffleByWeight(options: readonly PlanOption[], random: RandomStream): PartialPlan[] {
  const ranked = options.map(([weight, plan]) => ({ plan, rank: random.random() ** (1 / weight) }));
  return ranked.sort((a, b) => b.rank - a.rank).map(({ plan }) => plan);
}
