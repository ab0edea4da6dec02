import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleMask, type SampleOptions, type SpaceSeed } from "./space.js";

export type SpacesOf<T extends readonly unknown[]> = { readonly [K in keyof T]: Space<T[K]> };
export type SpaceFields<T extends object> = { readonly [K in keyof T]: Space<T[K]> };
type Fields = Readonly<Record<string, unknown>>;

/** A space whose members have one value per part. */
export abstract class CompositeSpace<T> extends Space<T> {
  private readonly partSpaces: readonly Space[];

  constructor(
    readonly names: readonly string[],
    spaces: Fields,
  ) {
    super();
    this.partSpaces = names.map((name) => {
      const space = spaces[name];
      if (space instanceof Space) return space;
      throw invalidArgument(`Element ${name} of the ${this.constructor.name} is not a Space: ${String(space)}`);
    });
  }

  override get parts(): readonly Space[] {
    return this.partSpaces;
  }

  /** Joins one value per part to a member. */
  abstract join(values: readonly unknown[]): T;
  /** Creates a space of the same structure with other parts. */
  abstract withParts(parts: readonly Space[]): Space;
  /** Whether a value has an entry for each part and no other. */
  protected abstract hasStructure(value: unknown): boolean;

  /** Splits a member into one value per part. */
  split(value: unknown): unknown[] {
    return this.names.map((name) => (value as Fields)[name]);
  }

  override seed(seed?: SpaceSeed): SpaceSeed {
    const { parts } = this;
    if (seed === undefined) return this.join(parts.map((space) => space.seed())) as SpaceSeed;
    const hasSeeds = typeof seed === "object";
    if (hasSeeds && !this.hasStructure(seed)) throw this.structureError("seeds");
    const seeds = (hasSeeds ? this.split(seed) : this.drawPartSeeds(seed, parts.length)) as SpaceSeed[];
    return this.join(parts.map((space, i) => space.seed(seeds[i]))) as SpaceSeed;
  }

  /**
   * Samples a member; a mask or probability has one entry per part, undefined or null for an
   * unrestricted part.
   */
  override sample(options: SampleOptions = {}): T {
    this.rejectMaskWithProbability(options);
    const { mask, probability } = options;
    const weights = mask ?? probability;
    const isKnown = (name: string) => this.names.includes(name);
    if (Array.isArray(weights) ? !this.hasStructure(weights) : !Object.keys(weights ?? {}).every(isKnown))
      throw this.structureError("masks");
    return this.join(
      this.parts.map((space, i) => {
        const part = ((weights as Fields | undefined)?.[this.names[i]] ?? undefined) as SampleMask | undefined;
        return space.sample(mask === undefined ? { probability: part } : { mask: part });
      }),
    );
  }

  override contains(value: unknown): value is T {
    return this.hasStructure(value) && this.split(value).every((part, i) => this.parts[i].contains(part));
  }

  override encode(value: T): JsonValue {
    return this.join(this.split(value).map((part, i) => this.parts[i].encode(part))) as JsonValue;
  }

  override decode(json: JsonValue): T {
    if (!this.hasStructure(json)) return this.checkMember(json);
    return this.join(this.split(json).map((part, i) => this.parts[i].decode(part as JsonValue)));
  }

  override get flatSize(): number | undefined {
    let size = 0;
    for (const { flatSize } of this.parts) {
      if (flatSize === undefined) return undefined;
      size += flatSize;
    }
    return size;
  }

  override flatten(value: T): number[] {
    return this.split(value).flatMap((part, i) => this.parts[i].flatten(part));
  }

  override unflatten(flat: ArrayLike<number>): T {
    const { flatSize } = this;
    if (flatSize !== flat.length)
      throw invalidArgument(`Expected ${flatSize ?? "no"} numbers for ${this.toString()}, got ${flat.length}.`);
    const all = Array.from(flat);
    let offset = 0;
    return this.join(
      this.parts.map((space) => space.unflatten(all.slice(offset, (offset += space.flatSize as number)))),
    );
  }

  private structureError(subject: string) {
    return invalidArgument(
      `The ${subject} of ${this.toString()} must have one entry per part: ${this.names.join(", ")}.`,
    );
  }
}

/** Tuples with one value per space. */
export class Tuple<T extends readonly unknown[] = readonly unknown[]> extends CompositeSpace<T> {
  constructor(spaces: SpacesOf<T>) {
    super(
      Array.from(spaces as readonly unknown[], (_, i) => String(i)),
      spaces as unknown as Fields,
    );
  }

  get spaces(): readonly Space[] {
    return this.parts;
  }

  override join(values: readonly unknown[]): T {
    return values as unknown as T;
  }

  override withParts(parts: readonly Space[]): Space {
    return new Tuple(parts);
  }

  protected override hasStructure(value: unknown): boolean {
    return Array.isArray(value) && value.length === this.parts.length;
  }

  override toString(): string {
    return `Tuple(${this.parts.join(", ")})`;
  }
}

/** Objects with one value per named space. Names are sorted, as in Gymnasium. */
export class Dict<T extends object = Record<string, unknown>> extends CompositeSpace<T> {
  constructor(spaces: SpaceFields<T>) {
    // Python sorts strings by code point.
    super(
      Object.keys(spaces).sort((a, b) => (a < b ? -1 : 1)),
      spaces,
    );
  }

  get spaces(): { readonly [name: string]: Space } {
    return this.join(this.parts) as { readonly [name: string]: Space };
  }

  override join(values: readonly unknown[]): T {
    return Object.fromEntries(this.names.map((name, i) => [name, values[i]])) as T;
  }

  override withParts(parts: readonly Space[]): Space {
    return new Dict(Object.fromEntries(this.names.map((name, i) => [name, parts[i]])));
  }

  protected override hasStructure(value: unknown): boolean {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    return Object.keys(value).length === this.names.length && this.names.every((name) => Object.hasOwn(value, name));
  }

  override toString(): string {
    return `Dict(${this.names.map((name, i) => `'${name}': ${this.parts[i].toString()}`).join(", ")})`;
  }
}
