import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleMask, type SampleOptions, type SpaceSeed } from "./space.js";

/** A value of one of several spaces, with the index of that space. */
export class OneOf<T = unknown> extends Space<readonly [index: number, value: T]> {
  readonly spaces: readonly Space<T>[];

  constructor(spaces: readonly Space<T>[]) {
    super();
    if (spaces.length === 0) throw invalidArgument("Empty `OneOf` spaces are not supported.");
    this.spaces = spaces;
  }

  override get parts(): readonly Space[] {
    return this.spaces;
  }

  override seed(seed?: SpaceSeed): SpaceSeed {
    return this.seedWithParts(seed);
  }

  /**
   * Samples a member; a mask or probability is a list with one entry per space, undefined or null
   * for an unrestricted one.
   */
  override sample(options: SampleOptions = {}): readonly [index: number, value: T] {
    this.rejectMaskWithProbability(options);
    const { spaces } = this;
    const weights = options.mask ?? options.probability;
    if (weights !== undefined && !(Array.isArray(weights) && weights.length === spaces.length))
      throw invalidArgument(`OneOf takes a list of ${spaces.length} masks, one for each space.`);
    const index = this.random.integers(0, spaces.length);
    const part = (weights as readonly (SampleMask | null)[] | undefined)?.[index] ?? undefined;
    return [index, spaces[index].sample(options.mask === undefined ? { probability: part } : { mask: part })];
  }

  override contains(value: unknown): value is readonly [index: number, value: T] {
    if (!Array.isArray(value) || value.length !== 2) return false;
    const [index, inner] = value as [unknown, unknown];
    return Number.isInteger(index) && this.spaces[index as number]?.contains(inner) === true;
  }

  override encode([index, value]: readonly [index: number, value: T]): JsonValue {
    return [index, this.spaces[index].encode(value)];
  }

  override decode(json: JsonValue): readonly [index: number, value: T] {
    const [index, inner] = Array.isArray(json) ? (json as readonly JsonValue[]) : [];
    const space = typeof index === "number" ? this.spaces[index] : undefined;
    return space === undefined ? this.checkMember(json) : [index as number, space.decode(inner)];
  }

  override get flatSize(): number | undefined {
    const sizes = this.spaces.map((space) => space.flatSize);
    return sizes.includes(undefined) ? undefined : 1 + Math.max(...(sizes as number[]));
  }

  /**
   * Returns the index and the flat value, padded with its first number to the longest part's size.
   */
  override flatten([index, value]: readonly [index: number, value: T]): number[] {
    const flat = this.spaces[index].flatten(value);
    const missing = (this.flatSize ?? 0) - 1 - flat.length;
    return [index, ...flat, ...Array.from({ length: missing }, () => flat[0])];
  }

  override unflatten(flat: ArrayLike<number>): readonly [index: number, value: T] {
    const space = this.spaces[flat[0]];
    if (space === undefined) return this.checkMember(Array.from(flat));
    return [flat[0], space.unflatten(Array.from(flat).slice(1, 1 + (space.flatSize ?? 0)))];
  }

  override toString(): string {
    return `OneOf(${this.spaces.join(", ")})`;
  }
}
