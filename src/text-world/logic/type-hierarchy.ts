import { compareStrings } from "./proposition.js";

/** The kinds of things of a game's rules, each with the kinds it extends. */
export class TypeHierarchy {
  private readonly parents = new Map<string, readonly string[]>();
  private readonly children = new Map<string, string[]>();
  private readonly tuples = new Map<string, readonly (readonly string[])[]>();

  /** Adds a type; false when its name is taken. */
  add(name: string, parents: readonly string[]): boolean {
    if (this.parents.has(name)) return false;
    this.parents.set(name, parents);
    for (const parent of parents) {
      const siblings = this.children.get(parent) ?? [];
      siblings.push(name);
      siblings.sort(compareStrings);
      this.children.set(parent, siblings);
    }
    this.tuples.clear();
    return true;
  }

  has(name: string): boolean {
    return this.parents.has(name);
  }

  get names(): readonly string[] {
    return [...this.parents.keys()];
  }

  /** Types that are things themselves (the player, the inventory): those with an upper-case first letter. */
  get constants(): readonly string[] {
    return this.names.filter((name) => name.charAt(0) === name.charAt(0).toUpperCase()).sort(compareStrings);
  }

  /** The type and all that extend it, nearest first. */
  subtypes(type: string): readonly string[] {
    return this.subtypeTuples([type]).map(([name]) => name);
  }

  /**
   * Every tuple of types that fits where `types` is expected, `types` itself first, then by distance.
   * The order decides between actions that read alike.
   */
  subtypeTuples(types: readonly string[]): readonly (readonly string[])[] {
    const key = types.join(",");
    const cached = this.tuples.get(key);
    if (cached !== undefined) return cached;
    const found: (readonly string[])[] = [types];
    const seen = new Set<string>();
    let frontier = this.narrowOnce(types);
    while (frontier.length > 0) {
      const next: (readonly string[])[] = [];
      for (const tuple of frontier) {
        found.push(tuple);
        for (const narrower of this.narrowOnce(tuple)) {
          const narrowerKey = narrower.join(",");
          if (seen.has(narrowerKey)) continue;
          seen.add(narrowerKey);
          next.push(narrower);
        }
      }
      frontier = next;
    }
    this.tuples.set(key, found);
    return found;
  }

  /** Descendants depth first, counting only each type's first parent: the order of TextWorld's command templates. */
  descendants(type: string): readonly string[] {
    const own = this.names.filter((name) => this.parents.get(name)?.[0] === type).sort(compareStrings);
    return own.flatMap((child) => [child, ...this.descendants(child)]);
  }

  private narrowOnce(types: readonly string[]): (readonly string[])[] {
    return types.flatMap((type, position) =>
      (this.children.get(type) ?? []).map((child) => types.with(position, child)),
    );
  }
}
