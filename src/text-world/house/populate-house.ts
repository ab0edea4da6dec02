import type { RandomStream } from "../../core/random/random-stream.js";
import type { EntityInfo } from "../game.js";
import { Proposition, type Variable } from "../logic/proposition.js";
import type { Direction, Connection } from "./house-map.js";
import { NameGenerator } from "./name-generator.js";
import type { ObjectKind, LockState, QuestPlan, GameObject } from "./quest-plan.js";

const PLAYER: Variable = { name: "P", type: "P" };
const INVENTORY: Variable = { name: "I", type: "I" };
/** Probability of a door in a connection that the quest does not need one in. */
const DOOR_PROBABILITY = 0.25;
const CLOSED_PROBABILITY = 0.4;
/** Weights of the kinds of filler objects. */
const FILLER_WEIGHTS: readonly (readonly [kind: ObjectKind, weight: number])[] = [
  ["o", 0.5],
  ["f", 0.15],
  ["s", 0.2],
  ["c", 0.15],
];

/** Inputs of `populateHouse`. */
export interface Blueprint {
  readonly rooms: number;
  readonly objects: number;
  readonly connections: readonly Connection[];
  readonly plan: QuestPlan;
}

/** A populated house: its initial facts and the names of its objects. */
export interface HouseContents {
  readonly plan: QuestPlan;
  readonly facts: readonly Proposition[];
  readonly infos: readonly EntityInfo[];
  getName(part: GameObject | Connection | number): string;
}

/** Places the quest's objects where the quest needs them, and filler objects elsewhere. */
export function populateHouse(blueprint: Blueprint, random: RandomStream): HouseContents {
  const populator = new HousePopulator(blueprint, random);
  populator.addRooms();
  populator.placeQuestObjects();
  populator.addFillerObjects();
  return populator;
}

class HousePopulator implements HouseContents {
  readonly plan: QuestPlan;
  readonly facts: Proposition[] = [];
  readonly infos: EntityInfo[] = [];
  private readonly names: NameGenerator;
  private readonly variables = new Map<GameObject | Connection | number, Variable>();
  private readonly materials = new Map<GameObject | Connection, string>();
  private readonly counts = new Map<string, number>();
  /** Places for portable objects: rooms, supporters and open containers. */
  private readonly placements: (readonly [predicate: "at" | "on" | "in", place: Variable])[] = [];

  constructor(
    private readonly blueprint: Blueprint,
    private readonly random: RandomStream,
  ) {
    this.plan = blueprint.plan;
    this.names = new NameGenerator(random);
    this.infos.push(
      { id: PLAYER.name, type: PLAYER.type, name: null },
      { id: INVENTORY.name, type: INVENTORY.type, name: null },
    );
  }

  getName(part: GameObject | Connection | number): string {
    const id = this.variables.get(part)?.name;
    return this.infos.find((info) => info.id === id)?.name ?? "";
  }

  /** Rooms, connections and doors. */
  addRooms(): void {
    for (let room = 0; room < this.blueprint.rooms; room++) {
      const variable = this.declareEntity(room, "r", this.names.draw("r"));
      this.placements.push(["at", variable]);
    }
    this.addFact("at", PLAYER, this.variable(this.plan.start));
    for (const connection of this.blueprint.connections) this.connectRooms(connection);
  }

  private connectRooms(connection: Connection): void {
    const [from, to] = [this.variable(connection.from), this.variable(connection.to)];
    this.facts.push(createDirectionFact(connection.direction, from, to));
    const lock = this.plan.locks.get(connection) ?? this.drawDoor(connection);
    if (lock !== undefined) {
      const locked = lock === "locked" ? this.getMaterial(connection) : undefined;
      const door = this.declareEntity(connection, "d", this.names.draw("d", locked));
      this.addFact("link", from, door, to);
      this.addFact("link", to, door, from);
      this.addFact(lock, door);
    }
    if (lock === undefined || lock === "open") {
      this.addFact("free", from, to);
      this.addFact("free", to, from);
    }
  }

  /** Doors outside the quest are open where the quest passes. */
  private drawDoor(connection: Connection): LockState | undefined {
    if (this.random.random() >= DOOR_PROBABILITY) return undefined;
    return !this.plan.usedConnections.has(connection) && this.random.random() < CLOSED_PROBABILITY ? "closed" : "open";
  }

  placeQuestObjects(): void {
    const { furniture, locks, locations } = this.plan;
    for (const [thing, room] of furniture) this.placeFurniture(thing, this.variable(room), locks.get(thing) ?? "open");
    for (const [thing, place] of locations) {
      const variable = this.declareEntity(thing, thing.kind, this.drawName(thing));
      if (place === "hands") this.addFact("in", variable, INVENTORY);
      else if (typeof place === "number") this.addFact("at", variable, this.variable(place));
      else this.addFact(place.kind === "s" ? "on" : "in", variable, this.variable(place));
      if (thing.opens !== undefined) this.addFact("match", variable, this.variable(thing.opens));
    }
  }

  /** Adds filler objects up to the requested number. */
  addFillerObjects(): void {
    const kinds = FILLER_WEIGHTS.map(([kind]) => kind);
    const probabilities = FILLER_WEIGHTS.map(([, weight]) => weight);
    const placed = this.plan.furniture.size + this.plan.locations.size;
    for (let count = placed; count < this.blueprint.objects; count++) {
      const thing: GameObject = { kind: this.random.choice(kinds, { probabilities }) };
      if (thing.kind === "s" || thing.kind === "c") {
        const room = this.variable(this.random.integers(this.blueprint.rooms));
        this.placeFurniture(thing, room, this.random.random() < CLOSED_PROBABILITY ? "closed" : "open");
      } else {
        const [predicate, place] = this.random.choice(this.placements);
        this.addFact(predicate, this.declareEntity(thing, thing.kind, this.drawName(thing)), place);
      }
    }
  }

  private placeFurniture(thing: GameObject, room: Variable, lock: LockState): void {
    const material = lock === "locked" ? this.getMaterial(thing) : undefined;
    const variable = this.declareEntity(thing, thing.kind, this.names.draw(thing.kind, material));
    this.addFact("at", variable, room);
    if (thing.kind === "c") this.addFact(lock, variable);
    if (thing.kind === "s") this.placements.push(["on", variable]);
    else if (lock === "open") this.placements.push(["in", variable]);
  }

  private drawName(thing: GameObject): string {
    return this.names.draw(thing.kind, thing.opens && this.getMaterial(thing.opens));
  }

  /** Draws the word that a lock and its key share. */
  private getMaterial(lock: GameObject | Connection): string {
    let material = this.materials.get(lock);
    if (material === undefined) {
      material = this.names.drawMaterial();
      this.materials.set(lock, material);
    }
    return material;
  }

  private declareEntity(part: GameObject | Connection | number, type: string, name: string): Variable {
    const count = this.counts.get(type) ?? 0;
    this.counts.set(type, count + 1);
    const variable = { name: `${type}_${count}`, type };
    this.variables.set(part, variable);
    this.infos.push({ id: variable.name, type, name });
    return variable;
  }

  private variable(part: GameObject | Connection | number): Variable {
    const variable = this.variables.get(part);
    if (variable === undefined) throw new Error("A part of the quest was not placed");
    return variable;
  }

  private addFact(predicate: string, ...variables: Variable[]): void {
    this.facts.push(new Proposition(predicate, variables));
  }
}

function createDirectionFact(direction: Direction, from: Variable, to: Variable): Proposition {
  const predicate = direction === "north" || direction === "south" ? "north_of" : "west_of";
  return new Proposition(predicate, direction === "north" || direction === "west" ? [to, from] : [from, to]);
}
