import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleMask, type SampleOptions, type SpaceSeed } from "./space.js";
import { checkSpaces, sumSizes, unflattenParts } from "./tuple.js";

export type SpaceFields<T extends object> = { readonly [K in keyof T]: Space<T[K]> };

/** Objects with one value per named space. Names are sorted, as in Gymnasium. */
export class Dict<T extends object = Record<string, unknown>> extends Space<T> {
  readonly spaces: { readonly [name: string]: Space };
  private readonly names: readonly string[];
  private readonly parts: readonly Space[];

  constructor(spaces: SpaceFields<T>) {
    super();
    // Python sorts strings by code point.
    this.names = Object.keys(spaces).sort((a, b) => (a < b ? -1 : 1));
    this.parts = checkSpaces(
      this.names.map((name) => (spaces as { [name: string]: Space })[name]),
      "Dict",
    );
    this.spaces = Object.fromEntries(this.names.map((name, i) => [name, this.parts[i]]));
  }

  override seed(seed?: SpaceSeed): SpaceSeed {
    const { names, parts } = this;
    let seeds: (SpaceSeed | undefined)[];
    if (seed === undefined) {
      seeds = names.map(() => undefined);
    } else if (typeof seed === "object") {
      const seedsByName = seed as { readonly [name: string]: SpaceSeed };
      if (Object.keys(seedsByName).length !== names.length || names.some((name) => seedsByName[name] === undefined)) {
        throw invalidArgument(`The seed's names must be those of the Dict: ${names.join(", ")}.`);
      }
      seeds = names.map((name) => seedsByName[name]);
    } else {
      seeds = this.drawPartSeeds(seed, parts.length);
    }
    return Object.fromEntries(names.map((name, i) => [name, parts[i].seed(seeds[i])]));
  }

  /** Samples a member; a mask or probability is an object with one entry per name. */
  override sample(options: SampleOptions = {}): T {
    this.rejectMaskWithProbability(options);
    const { mask, probability } = options;
    const weights = (mask ?? probability) as { readonly [name: string]: SampleMask | undefined } | undefined;
    if (weights !== undefined && Object.keys(weights).some((name) => !this.names.includes(name))) {
      throw invalidArgument(`The mask's names must be those of the Dict: ${this.names.join(", ")}.`);
    }
    const restrict = (name: string) =>
      mask === undefined ? { probability: weights?.[name] } : { mask: weights?.[name] };
    return this.mapParts((space, name) => space.sample(restrict(name)));
  }

  override contains(value: unknown): value is T {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    const fields = value as { readonly [name: string]: unknown };
    return (
      Object.keys(fields).length === this.names.length &&
      this.names.every((name, i) => Object.hasOwn(fields, name) && this.parts[i].contains(fields[name]))
    );
  }

  override encode(value: T): JsonValue {
    return this.mapParts((space, name) => space.encode((value as Record<string, unknown>)[name])) as JsonValue;
  }

  override decode(json: JsonValue): T {
    if (typeof json !== "object" || json === null || this.names.some((name) => !Object.hasOwn(json, name))) {
      return this.checkMember(json);
    }
    return this.mapParts((space, name) => space.decode((json as { readonly [name: string]: JsonValue })[name]));
  }

  override get flatSize(): number | undefined {
    return sumSizes(this.parts);
  }

  override flatten(value: T): number[] {
    return this.names.flatMap((name, i) => this.parts[i].flatten((value as Record<string, unknown>)[name]));
  }

  override unflatten(flat: ArrayLike<number>): T {
    const values = unflattenParts(this.parts, flat);
    return Object.fromEntries(this.names.map((name, i) => [name, values[i]])) as T;
  }

  override toString(): string {
    return `Dict(${this.names.map((name, i) => `'${name}': ${this.parts[i].toString()}`).join(", ")})`;
  }

  private mapParts(make: (space: Space, name: string) => unknown): T {
    return Object.fromEntries(this.names.map((name, i) => [name, make(this.parts[i], name)])) as T;
  }
}
