import type { RandomStream } from "../../../tensor/random.js";
import { type Direction, distancesFrom, exitsOf, type Joint, OPPOSITE } from "./map.js";

/** Kinds of things: container, supporter, object, key, food. */
export type Kind = "c" | "s" | "o" | "k" | "f";

/** Something that the quest needs; `opens` is what a key fits. */
export interface Thing {
  readonly kind: Kind;
  readonly opens?: Thing | Joint;
}

/** One command of the quest. */
export type Step =
  | { readonly verb: "go"; readonly direction: Direction; readonly from: number; readonly to: number }
  | { readonly verb: "take" | "eat"; readonly object: Thing; readonly from?: Thing }
  | { readonly verb: "put" | "insert"; readonly object: Thing; readonly into: Thing }
  | { readonly verb: "open"; readonly what: Thing | Joint }
  | { readonly verb: "unlock"; readonly what: Thing | Joint; readonly key: Thing };

export type LockState = "open" | "closed" | "locked";

/** A quest of a given length, and how the world must be for it to start. */
export interface Plan {
  readonly start: number;
  readonly steps: readonly Step[];
  /** Where each portable thing is at first: in the player's hands, or in a room, perhaps in or on something there. */
  readonly places: ReadonlyMap<Thing, Thing | number | "hands">;
  /** Where the containers and supporters are. */
  readonly furniture: ReadonlyMap<Thing, number>;
  readonly locks: ReadonlyMap<Thing | Joint, LockState>;
  /** The joints that the quest passes. */
  readonly passed: ReadonlySet<Joint>;
}

/** How the world must be before the steps found so far, worked out from the end of the quest to its start. */
interface Partial {
  readonly room: number;
  /** What must be in the player's hands, and has not been taken yet. */
  readonly wanted: readonly Thing[];
  /** What must be open or unlocked here, and has not been seen to yet. */
  readonly barrier: { readonly what: Thing | Joint; readonly needs: "open" | "closed" } | undefined;
  /** The room of the next thing to do: ways lead straight there. */
  readonly anchor: number;
  readonly steps: readonly Step[];
  readonly places: ReadonlyMap<Thing, Thing | number>;
  readonly furniture: ReadonlyMap<Thing, number>;
  readonly locks: ReadonlyMap<Thing | Joint, LockState>;
  readonly passed: ReadonlySet<Joint>;
}

interface Option {
  readonly weight: number;
  readonly next: () => Partial;
}

/** Attempts after which a quest of this length counts as impossible. */
const MAX_ATTEMPTS = 20_000;
const FOOD_CHANCE = 0.25;

/**
 * A quest of exactly `length` commands, each of which is needed: built from its last command backwards, a command at a
 * time that brings about what a later one needs. Undefined when there is none on this map.
 */
export function drawPlan(
  rooms: number,
  joints: readonly Joint[],
  length: number,
  random: RandomStream,
): Plan | undefined {
  let attempts = 0;
  const extend = (partial: Partial): Partial | undefined => {
    if (partial.steps.length >= length) return partial.steps.length === length ? partial : undefined;
    for (const option of weightedOrder(optionsFor(partial, rooms, joints), random)) {
      if (++attempts > MAX_ATTEMPTS) return undefined;
      const found = extend(option.next());
      if (found !== undefined) return found;
    }
    return undefined;
  };
  // Food is carried about too, and lost when it is eaten on the way.
  const object: Thing = { kind: random.random() < FOOD_CHANCE ? "f" : "o" };
  for (const goal of weightedOrder(goalsIn(random.integers(rooms), object), random)) {
    const partial = extend(goal.next());
    if (partial !== undefined) return finish(partial);
  }
  return undefined;
}

function goalsIn(room: number, object: Thing): Option[] {
  const empty: Partial = {
    room,
    wanted: [],
    barrier: undefined,
    anchor: room,
    steps: [],
    places: new Map(),
    furniture: new Map(),
    locks: new Map(),
    passed: new Set(),
  };
  const food: Thing = { kind: "f" };
  const table: Thing = { kind: "s" };
  const box: Thing = { kind: "c" };
  return [
    { weight: 3, next: () => ({ ...empty, wanted: [object] }) },
    {
      weight: 2,
      next: () => ({
        ...empty,
        wanted: [object],
        steps: [{ verb: "put", object, into: table }],
        furniture: new Map([[table, room]]),
      }),
    },
    {
      weight: 2,
      next: () => ({
        ...empty,
        wanted: [object],
        barrier: { what: box, needs: "open" },
        steps: [{ verb: "insert", object, into: box }],
        furniture: new Map([[box, room]]),
      }),
    },
    { weight: 1, next: () => ({ ...empty, wanted: [food], steps: [{ verb: "eat", object: food }] }) },
  ];
}

/** What could have been done just before. */
function optionsFor(partial: Partial, rooms: number, joints: readonly Joint[]): Option[] {
  const { barrier } = partial;
  const options: Option[] = partial.wanted.flatMap((thing) => takes(partial, thing));
  if (barrier?.needs === "open") options.push({ weight: 4, next: () => open(partial, barrier.what) });
  if (barrier?.needs === "closed") options.push({ weight: 2, next: () => unlock(partial, barrier.what) });
  // A quest whose last command is not known yet ends where it is.
  if (partial.steps.length > 0) options.push(...moves(partial, rooms, joints));
  return options;
}

function takes(partial: Partial, thing: Thing): Option[] {
  const taken = (from: Thing | undefined, barrier: Partial["barrier"]): Partial => ({
    ...partial,
    anchor: partial.room,
    barrier,
    wanted: partial.wanted.filter((other) => other !== thing),
    steps: [{ verb: "take", object: thing, from }, ...partial.steps],
    places: new Map(partial.places).set(thing, from ?? partial.room),
    furniture: from === undefined ? partial.furniture : new Map(partial.furniture).set(from, partial.room),
  });
  const supporter: Thing = { kind: "s" };
  const container: Thing = { kind: "c" };
  const options = [
    { weight: 1, next: () => taken(undefined, partial.barrier) },
    { weight: 1, next: () => taken(supporter, partial.barrier) },
  ];
  // One barrier at a time: what is still in the way here is seen to first.
  if (partial.barrier === undefined) {
    options.push({ weight: 2, next: () => taken(container, { what: container, needs: "open" }) });
  }
  return options;
}

function open(partial: Partial, what: Thing | Joint): Partial {
  return {
    ...partial,
    barrier: { what, needs: "closed" },
    anchor: partial.room,
    steps: [{ verb: "open", what }, ...partial.steps],
    locks: new Map(partial.locks).set(what, "closed"),
  };
}

function unlock(partial: Partial, what: Thing | Joint): Partial {
  const key: Thing = { kind: "k", opens: what };
  return {
    ...partial,
    barrier: undefined,
    anchor: partial.room,
    wanted: [...partial.wanted, key],
    steps: [{ verb: "unlock", what, key }, ...partial.steps],
    locks: new Map(partial.locks).set(what, "locked"),
  };
}

/** Coming from a room that is one farther from where the next thing is to be done. */
function moves(partial: Partial, rooms: number, joints: readonly Joint[]): Option[] {
  // A door that the quest opens later is still closed.
  const passable = joints.filter((joint) => !partial.locks.has(joint));
  const distances = distancesFrom(partial.anchor, passable, rooms);
  return exitsOf(partial.room, passable)
    .filter(({ to }) => distances[to] === distances[partial.room] + 1)
    .flatMap(({ to, direction, joint }) => {
      const come = (barrier: Partial["barrier"]): Partial => ({
        ...partial,
        room: to,
        barrier,
        steps: [{ verb: "go", direction: OPPOSITE[direction], from: to, to: partial.room }, ...partial.steps],
        passed: new Set(partial.passed).add(joint),
      });
      const options: Option[] = [{ weight: 3, next: () => come(undefined) }];
      // Passed already (later in the quest), it must have been open.
      if (joint.isBridge && !partial.passed.has(joint)) {
        options.push({ weight: 2, next: () => come({ what: joint, needs: "open" }) });
      }
      return options;
    });
}

function finish(partial: Partial): Plan {
  const places = new Map<Thing, Thing | number | "hands">(partial.places);
  for (const thing of partial.wanted) places.set(thing, "hands");
  return { ...partial, start: partial.room, places };
}

/** The options in random order, heavier ones more likely first. */
function weightedOrder(options: readonly Option[], random: RandomStream): Option[] {
  return options
    .map((option) => ({ option, rank: random.random() ** (1 / option.weight) }))
    .sort((a, b) => b.rank - a.rank)
    .map(({ option }) => option);
}
