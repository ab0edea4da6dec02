import type { RandomStream } from "../../../tensor/random.js";
import type { EntityInfo } from "../game.js";
import { Proposition, type Variable } from "../logic/terms.js";
import type { Direction, Joint } from "./map.js";
import { NameGiver } from "./names.js";
import type { Kind, LockState, Plan, Thing } from "./plan.js";

const PLAYER: Variable = { name: "P", type: "P" };
const HANDS: Variable = { name: "I", type: "I" };
/** How often a joint that the quest does not need a door in has one. */
const DOOR_CHANCE = 0.25;
const CLOSED_CHANCE = 0.4;
/** What a thing that only fills the house is, by weight. */
const FILLERS: readonly (readonly [kind: Kind, weight: number])[] = [
  ["o", 0.5],
  ["f", 0.15],
  ["s", 0.2],
  ["c", 0.15],
];

/** What to furnish. */
export interface Blueprint {
  readonly rooms: number;
  readonly objects: number;
  readonly joints: readonly Joint[];
  readonly plan: Plan;
}

/** A house with everything in its place: what is true of it at first, and what its things are called. */
export interface Furnished {
  readonly plan: Plan;
  readonly facts: readonly Proposition[];
  readonly infos: readonly EntityInfo[];
  nameOf(part: Thing | Joint | number): string;
}

/** Puts the quest's things where the quest needs them, and others in between. */
export function furnish(blueprint: Blueprint, random: RandomStream): Furnished {
  const furnisher = new Furnisher(blueprint, random);
  furnisher.openRooms();
  furnisher.placeQuest();
  furnisher.fillUp();
  return furnisher;
}

class Furnisher implements Furnished {
  readonly plan: Plan;
  readonly facts: Proposition[] = [];
  readonly infos: EntityInfo[] = [];
  private readonly names: NameGiver;
  private readonly variables = new Map<Thing | Joint | number, Variable>();
  private readonly materials = new Map<Thing | Joint, string>();
  private readonly counts = new Map<string, number>();
  /** Where portable things can be put: rooms, supporters and open containers. */
  private readonly spots: (readonly [predicate: "at" | "on" | "in", place: Variable])[] = [];

  constructor(
    private readonly blueprint: Blueprint,
    private readonly random: RandomStream,
  ) {
    this.plan = blueprint.plan;
    this.names = new NameGiver(random);
    this.infos.push(
      { id: PLAYER.name, type: PLAYER.type, name: null },
      { id: HANDS.name, type: HANDS.type, name: null },
    );
  }

  nameOf(part: Thing | Joint | number): string {
    const id = this.variables.get(part)?.name;
    return this.infos.find((info) => info.id === id)?.name ?? "";
  }

  /** Rooms, their joints and doors. */
  openRooms(): void {
    for (let room = 0; room < this.blueprint.rooms; room++) {
      const variable = this.declare(room, "r", this.names.room());
      this.spots.push(["at", variable]);
    }
    this.state("at", PLAYER, this.variable(this.plan.start));
    for (const joint of this.blueprint.joints) this.join(joint);
  }

  private join(joint: Joint): void {
    const [from, to] = [this.variable(joint.from), this.variable(joint.to)];
    this.facts.push(isBeyond(joint.direction, from, to));
    const lock = this.plan.locks.get(joint) ?? this.drawDoor(joint);
    if (lock !== undefined) {
      const locked = lock === "locked" ? this.materialOf(joint) : undefined;
      const door = this.declare(joint, "d", this.names.door(locked));
      this.state("link", from, door, to);
      this.state("link", to, door, from);
      this.state(lock, door);
    }
    if (lock === undefined || lock === "open") {
      this.state("free", from, to);
      this.state("free", to, from);
    }
  }

  /** A door that the quest has nothing to do with stands open where the quest passes. */
  private drawDoor(joint: Joint): LockState | undefined {
    if (this.random.random() >= DOOR_CHANCE) return undefined;
    return !this.plan.passed.has(joint) && this.random.random() < CLOSED_CHANCE ? "closed" : "open";
  }

  placeQuest(): void {
    const { furniture, locks, places } = this.plan;
    for (const [thing, room] of furniture) this.placeFurniture(thing, this.variable(room), locks.get(thing) ?? "open");
    for (const [thing, place] of places) {
      const variable = this.declare(thing, thing.kind, this.drawName(thing));
      if (place === "hands") this.state("in", variable, HANDS);
      else if (typeof place === "number") this.state("at", variable, this.variable(place));
      else this.state(place.kind === "s" ? "on" : "in", variable, this.variable(place));
      if (thing.opens !== undefined) this.state("match", variable, this.variable(thing.opens));
    }
  }

  /** Things that the quest does not need, until there are as many as were asked for. */
  fillUp(): void {
    const kinds = FILLERS.map(([kind]) => kind);
    const probabilities = FILLERS.map(([, weight]) => weight);
    const placed = this.plan.furniture.size + this.plan.places.size;
    for (let count = placed; count < this.blueprint.objects; count++) {
      const thing: Thing = { kind: this.random.choice(kinds, { probabilities }) };
      if (thing.kind === "s" || thing.kind === "c") {
        const room = this.variable(this.random.integers(this.blueprint.rooms));
        this.placeFurniture(thing, room, this.random.random() < CLOSED_CHANCE ? "closed" : "open");
      } else {
        const [predicate, place] = this.random.choice(this.spots);
        this.state(predicate, this.declare(thing, thing.kind, this.drawName(thing)), place);
      }
    }
  }

  private placeFurniture(thing: Thing, room: Variable, lock: LockState): void {
    const material = lock === "locked" ? this.materialOf(thing) : undefined;
    const name = thing.kind === "s" ? this.names.supporter() : this.names.container(material);
    const variable = this.declare(thing, thing.kind, name);
    this.state("at", variable, room);
    if (thing.kind === "c") this.state(lock, variable);
    if (thing.kind === "s") this.spots.push(["on", variable]);
    else if (lock === "open") this.spots.push(["in", variable]);
  }

  private drawName(thing: Thing): string {
    if (thing.kind === "f") return this.names.food();
    return thing.opens === undefined ? this.names.object() : this.names.key(this.materialOf(thing.opens));
  }

  /** The word that a lock and its key share. */
  private materialOf(lock: Thing | Joint): string {
    let material = this.materials.get(lock);
    if (material === undefined) {
      material = this.names.material();
      this.materials.set(lock, material);
    }
    return material;
  }

  private declare(part: Thing | Joint | number, type: string, name: string): Variable {
    const count = this.counts.get(type) ?? 0;
    this.counts.set(type, count + 1);
    const variable = { name: `${type}_${count}`, type };
    this.variables.set(part, variable);
    this.infos.push({ id: variable.name, type, name });
    return variable;
  }

  private variable(part: Thing | Joint | number): Variable {
    const variable = this.variables.get(part);
    if (variable === undefined) throw new Error("A part of the quest was not placed");
    return variable;
  }

  private state(predicate: string, ...variables: Variable[]): void {
    this.facts.push(new Proposition(predicate, variables));
  }
}

/** That `to` lies in this direction of `from`. */
function isBeyond(direction: Direction, from: Variable, to: Variable): Proposition {
  switch (direction) {
    case "north":
      return new Proposition("north_of", [to, from]);
    case "south":
      return new Proposition("north_of", [from, to]);
    case "west":
      return new Proposition("west_of", [to, from]);
    case "east":
      return new Proposition("west_of", [from, to]);
  }
}
