import type { TextWorldGame } from "../game.js";
import type { Facts } from "../logic/facts.js";
import { compareStrings, type Variable } from "../logic/proposition.js";
import { DIRECTIONS, type Direction } from "./house-map.js";
import { LOCK_STATES, type LockState } from "./quest-plan.js";

const RELATIONS = ["at", "in", "on"] as const;

/** Where a portable object is. */
interface ObjectLocation {
  readonly relation: (typeof RELATIONS)[number];
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
  /** Arguments of the facts by predicate. */
  private readonly facts = new Map<string, (readonly Variable[])[]>();

  constructor(
    private readonly game: TextWorldGame,
    facts: Facts,
  ) {
    for (const { name, variables } of facts) this.facts.set(name, [...this.list(name), variables]);
    this.room = this.locate("P")!.place;
  }

  getName(object: Variable): string {
    return this.game.getName(object.name);
  }

  /** Lists the objects of some types that are in the room, but in or on nothing else. */
  listInRoom(matchesType: (type: string) => boolean): Variable[] {
    return this.listObjects(["at"], this.room.name).filter(({ type }) => matchesType(type));
  }

  /** Lists what is in or on an object, or in the player's hands ("I"). */
  listContents(id: string): Variable[] {
    return this.listObjects(["in", "on"], id);
  }

  locate(id: string): ObjectLocation | undefined {
    for (const relation of RELATIONS) {
      const location = this.list(relation).find(([object]) => object.name === id);
      if (location !== undefined) return { relation, place: location[1] };
    }
    return undefined;
  }

  /** Returns the state of a door or container. */
  getLockState(id: string): LockState | undefined {
    return LOCK_STATES.find((state) => this.list(state).some(([object]) => object.name === id));
  }

  keyFits(key: string, lock: string): boolean {
    return this.list("match").some(([first, second]) => first.name === key && second.name === lock);
  }

  exits(): Exit[] {
    const listExits = (predicate: string, ahead: Direction, behind: Direction) =>
      this.list(predicate).flatMap(([first, second]) => {
        if (second.name === this.room.name) return [this.exit(ahead, first)];
        return first.name === this.room.name ? [this.exit(behind, second)] : [];
      });
    const exits = [...listExits("north_of", "north", "south"), ...listExits("west_of", "west", "east")];
    return exits.sort((a, b) => DIRECTIONS.indexOf(a.direction) - DIRECTIONS.indexOf(b.direction));
  }

  /**
   * Finds the object of this name among those that the player can see or holds, or else the objects
   * whose names have all these words.
   */
  findByWords(words: string): Variable[] {
    const furniture = this.listInRoom(() => true);
    const open = furniture.filter(({ name, type }) => type !== "c" || this.getLockState(name) === "open");
    const doors = this.exits().flatMap(({ door }) => door ?? []);
    const contents = open.flatMap(({ name }) => this.listContents(name));
    const visible = [...furniture, ...contents, ...doors, ...this.listContents("I")];
    const exact = visible.filter((object) => this.getName(object) === words);
    if (exact.length > 0) return exact;
    return visible.filter((object) => {
      const nameWords = this.getName(object).split(" ");
      return words.split(" ").every((word) => nameWords.includes(word));
    });
  }

  private exit(direction: Direction, to: Variable): Exit {
    const link = this.list("link").find(([from, , target]) => from.name === this.room.name && target.name === to.name);
    return { direction, to, door: link?.[1] };
  }

  private list(predicate: string): readonly (readonly Variable[])[] {
    return this.facts.get(predicate) ?? [];
  }

  private listObjects(relations: readonly string[], place: string): Variable[] {
    const located = relations.flatMap((relation) => this.list(relation)).filter((fact) => fact[1].name === place);
    const objects = located.map(([object]) => object).filter(({ type }) => type !== "P");
    return objects.sort((a, b) => compareStrings(this.getName(a), this.getName(b)));
  }
}
