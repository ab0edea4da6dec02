import { LlamaGymError } from "../../core/errors.js";
import { compareStrings } from "./proposition.js";

/**
 * Limit for untrusted game files on the subtypes of a predicate's arguments; TextWorld's have some
 * dozens.
 */
const MAX_TUPLES = 10_000;

/** The types of a game's objects, each with the types it extends. */
export class TypeHierarchy {
  private readonly tuples = new Map<string, readonly (readonly string[])[]>();

  constructor(private readonly parents: ReadonlyMap<string, readonly string[]>) {}

  has(name: string): boolean {
    return this.parents.has(name);
  }

  /**
   * Types that are objects themselves (the player, the inventory): those with an upper-case first
   * letter.
   */
  get constants(): readonly string[] {
    return [...this.parents.keys()].filter((name) => name[0] === name[0].toUpperCase()).sort(compareStrings);
  }

  /**
   * Lists the tuples of types that fit where `types` is expected: `types` itself, then by distance.
   * The order decides between actions with the same command.
   */
  subtypeTuples(types: readonly string[]): readonly (readonly string[])[] {
    const key = types.join(",");
    const cached = this.tuples.get(key);
    if (cached !== undefined) return cached;
    const found: (readonly string[])[] = [types];
    const seen = new Set<string>();
    // Nearest first: `found` grows while it is read.
    for (const tuple of found) {
      for (const narrower of this.narrowOnce(tuple)) {
        const narrowerKey = narrower.join(",");
        if (!seen.has(narrowerKey)) found.push(narrower);
        seen.add(narrowerKey);
      }
      if (found.length > MAX_TUPLES)
        throw new LlamaGymError("ENV_FAILED", `The types ${key} of the game have more than ${MAX_TUPLES} subtypes.`);
    }
    this.tuples.set(key, found);
    return found;
  }

  /**
   * Lists descendants depth first, counting only each type's first parent: the order of TextWorld's
   * command templates.
   */
  descendants(type: string): readonly string[] {
    const own = [...this.parents].filter(([, parents]) => parents[0] === type).map(([name]) => name);
    return own.sort(compareStrings).flatMap((child) => [child, ...this.descendants(child)]);
  }

  private narrowOnce(types: readonly string[]): (readonly string[])[] {
    return types.flatMap((type, position) => {
      const children = [...this.parents].filter(([, parents]) => parents.includes(type)).map(([name]) => name);
      return children.sort(compareStrings).map((child) => types.with(position, child));
    });
  }
}
