import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleOptions, type SpaceSeed } from "./space.js";
import { checkSpaces, checkSeedCount, isSeedList, splitSampleOptions } from "./tuple.js";

/** A value of one of several spaces, with the index of that space. */
export class OneOf<T = unknown> extends Space<readonly [index: number, value: T]> {
  readonly spaces: readonly Space<T>[];

  constructor(spaces: readonly Space<T>[]) {
    super();
    if (spaces.length === 0) throw invalidArgument("Empty `OneOf` spaces are not supported.");
    this.spaces = checkSpaces(spaces, "OneOf") as readonly Space<T>[];
  }

  override seed(seed?: SpaceSeed): SpaceSeed {
    if (seed === undefined) return [this.startStream(), ...this.spaces.map((space) => space.seed())];
    const seeds = isSeedList(seed) ? seed : [seed, ...this.drawPartSeeds(seed, this.spaces.length)];
    checkSeedCount(seeds, this.spaces.length + 1, "OneOf");
    return [this.startStream(seeds[0]), ...this.spaces.map((space, i) => space.seed(seeds[i + 1]))];
  }

  override sample(options: SampleOptions = {}): readonly [index: number, value: T] {
    this.rejectMaskWithProbability(options);
    const parts = splitSampleOptions(options, this.spaces.length, "OneOf");
    const index = this.random.integers(0, this.spaces.length);
    return [index, this.spaces[index].sample(parts[index])];
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

  /** Returns the index and the flat value, padded with its first number to the longest part's size. */
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
