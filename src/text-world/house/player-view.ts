import type { Game } from "../game.js";
import type { Facts } from "../logic/facts.js";
import { compareStrings, type Variable } from "../logic/proposition.js";
import { DIRECTIONS, type Direction } from "./house-map.js";
import type { LockState } from "./quest-plan.js";

/** Where a portable thing is. */
export interface ObjectLocation {
  readonly relation: "at" | "in" | "on";
  readonly place: Variable;
}

/** A way out of a room. */
export interface Exit {
  readonly direction: Direction;
  readonly to: Variable;
  readonly door: Variable | undefined;
}

/** The visible part of a house. */
export class PlayerView {
  readonly room: Variable;

  constructor(
    private readonly game: Game,
    private readonly facts: Facts,
  ) {
    this.room = this.findPlace("P") as Variable;
  }

  getName(thing: Variable): string {
    return this.game.getName(thing.name);
  }

  /** The things of a type that stand or lie in the room itself. */
  listInRoom(matchesType: (type: string) => boolean): Variable[] {
    return this.things(({ relation, place }) => relation === "at" && place.name === this.room.name, matchesType);
  }

  /** What is in or on something, or in the player's hands ("I"). */
  listContents(id: string): Variable[] {
    return this.things(({ relation, place }) => relation !== "at" && place.name === id);
  }

  locate(id: string): ObjectLocation | undefined {
    for (const { name, variables } of this.facts) {
      if ((name === "at" || name === "in" || name === "on") && variables[0].name === id) {
        return { relation: name, place: variables[1] };
      }
    }
    return undefined;
  }

  /** Of a door or container. */
  getLockState(id: string): LockState | undefined {
    for (const { name, variables } of this.facts) {
      if ((name === "open" || name === "closed" || name === "locked") && variables[0].name === id) return name;
    }
    return undefined;
  }

  /** Whether the key fits the lock. */
  keyFits(key: string, lock: string): boolean {
    for (const { name, variables } of this.facts) {
      if (name === "match" && variables[0].name === key && variables[1].name === lock) return true;
    }
    return false;
  }

  exits(): Exit[] {
    const exits: Exit[] = [];
    for (const { name, variables } of this.facts) {
      if (name !== "north_of" && name !== "west_of") continue;
      const [ahead, behind] = variables;
      if (behind.name === this.room.name) exits.push(this.exit(name === "north_of" ? "north" : "west", ahead));
      if (ahead.name === this.room.name) exits.push(this.exit(name === "north_of" ? "south" : "east", behind));
    }
    return exits.sort((a, b) => DIRECTIONS.indexOf(a.direction) - DIRECTIONS.indexOf(b.direction));
  }

  /** Everything that the player can see or holds: furniture, doors, what lies about, stands open or is carried. */
  listVisible(): Variable[] {
    const furniture = this.listInRoom((type) => type !== "P");
    const shown = furniture.filter(({ name, type }) => type !== "c" || this.getLockState(name) === "open");
    const doors = this.exits().flatMap(({ door }) => (door === undefined ? [] : [door]));
    return [...furniture, ...shown.flatMap(({ name }) => this.listContents(name)), ...doors, ...this.listContents("I")];
  }

  /**
   * What the words mean: the thing of that name, or else the only one whose name has all these words.
   * Gives all that they may mean.
   */
  findByWords(words: string): Variable[] {
    const things = this.listVisible();
    const exact = things.filter((thing) => this.getName(thing) === words);
    if (exact.length > 0) return exact;
    const requestedWords = words.split(" ");
    return things.filter((thing) => {
      const nameWords = this.getName(thing).split(" ");
      return requestedWords.every((word) => nameWords.includes(word));
    });
  }

  private exit(direction: Direction, to: Variable): Exit {
    for (const { name, variables } of this.facts) {
      if (name === "link" && variables[0].name === this.room.name && variables[2].name === to.name) {
        return { direction, to, door: variables[1] };
      }
    }
    return { direction, to, door: undefined };
  }

  private findPlace(id: string): Variable | undefined {
    return this.locate(id)?.place;
  }

  private things(
    matchesLocation: (where: ObjectLocation) => boolean,
    matchesType: (type: string) => boolean = () => true,
  ): Variable[] {
    const found: Variable[] = [];
    for (const { name, variables } of this.facts) {
      if (name !== "at" && name !== "in" && name !== "on") continue;
      const [thing, place] = variables;
      if (thing.type !== "P" && matchesType(thing.type) && matchesLocation({ relation: name, place }))
        found.push(thing);
    }
    return found.sort((a, b) => compareStrings(this.getName(a), this.getName(b)));
  }
}
