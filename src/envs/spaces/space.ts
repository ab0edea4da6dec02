import { excerpt } from "../../core/format.js";
import { invalidArgument } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import type { JsonValue } from "../../core/json.js";
import { createSeededStream } from "../seeded-stream.js";

/** Flags or probabilities of the possible values, in the space's structure. */
export type SampleMask =
  | ArrayLike<number>
  | readonly (SampleMask | number | null | undefined)[]
  | { readonly [key: string]: SampleMask | undefined };

/** Options of `Space.sample`. */
export interface SampleOptions {
  /** 1 for allowed values, 0 for others. */
  readonly mask?: SampleMask;
  /** Probability of each value. */
  readonly probability?: SampleMask;
}

/** A seed; for a composite space, optionally one per part. */
export type SpaceSeed = number | bigint | readonly SpaceSeed[] | { readonly [key: string]: SpaceSeed };

/**
 * The set of valid observations or actions. `seed` and `sample` draw the same values as Gymnasium;
 * `toString` prints the same text. Arrays are flat and row-major, with their extents in `shape`.
 */
export abstract class Space<T = unknown> {
  /** Extents of an array space; undefined for other spaces. */
  readonly shape: readonly number[] | undefined;
  private stream: RandomStream | undefined;

  constructor(shape?: readonly number[]) {
    this.shape = shape;
  }

  /** Draws a member; `mask` or `probability` restrict it where the space supports them. */
  abstract sample(options?: SampleOptions): T;
  abstract contains(value: unknown): value is T;
  /** Encodes a member as JSON. */
  abstract encode(value: T): JsonValue;
  /** Decodes the JSON of `encode`. */
  abstract decode(json: JsonValue): T;
  /** Formats the space as Gymnasium prints it. */
  abstract toString(): string;

  /** Length of the result of `flatten`; undefined when members have no fixed length. */
  get flatSize(): number | undefined {
    return undefined;
  }

  /** Flattens a member to numbers: arrays unchanged, categories one-hot, parts concatenated. */
  flatten(_value: T): number[] {
    throw invalidArgument(`${this.toString()} has no fixed size, so its members cannot be flattened.`);
  }

  /** Restores a member from the numbers of `flatten`. */
  unflatten(_flat: ArrayLike<number>): T {
    throw invalidArgument(`${this.toString()} has no fixed size, so its members cannot be unflattened.`);
  }

  /** Spaces that the space consists of. */
  get parts(): readonly Space[] {
    return [];
  }

  /** Compares the sets, ignoring their random streams. */
  equals(other: Space): boolean {
    return (
      this.constructor === other.constructor &&
      this.toString() === other.toString() &&
      this.parts.every((part, i) => part.equals(other.parts[i]))
    );
  }

  /**
   * Seeds the random streams of the space and its parts. Returns the seeds in the space's
   * structure.
   */
  seed(seed?: SpaceSeed): SpaceSeed {
    return this.startStream(seed);
  }

  protected get random(): RandomStream {
    if (this.stream === undefined) this.startStream();
    return this.stream as RandomStream;
  }

  protected startStream(seed?: SpaceSeed): number | bigint {
    if (typeof seed === "object")
      throw invalidArgument(`${this.toString()} takes one seed, got ${JSON.stringify(seed)}.`);
    const seeded = createSeededStream(seed);
    this.stream = seeded.stream;
    return seeded.seed;
  }

  /** Draws one seed for each of `count` parts. */
  protected drawPartSeeds(seed: SpaceSeed, count: number): number[] {
    this.startStream(seed);
    return Array.from({ length: count }, () => this.random.integers(0, 2147483647));
  }

  /** Seeds the space's own stream, then those of its parts; for spaces that draw from both. */
  protected seedWithParts(seed: SpaceSeed | undefined): SpaceSeed {
    const { parts } = this;
    if (seed === undefined) return [this.startStream(), ...parts.map((space) => space.seed())];
    const isList = Array.isArray(seed);
    const seeds: readonly SpaceSeed[] = isList ? seed : [seed, ...this.drawPartSeeds(seed, parts.length)];
    if (seeds.length !== parts.length + 1)
      throw invalidArgument(`${this.constructor.name} takes ${parts.length + 1} seeds, got ${seeds.length}.`);
    return [this.startStream(seeds[0]), ...parts.map((space, i) => space.seed(seeds[i + 1]))];
  }

  /** @throws INVALID_ARGUMENT for a mask or probability, which the space does not support. */
  protected rejectMask(options: SampleOptions | undefined): void {
    if (options?.mask !== undefined || options?.probability !== undefined)
      throw invalidArgument(`${this.constructor.name}.sample supports neither a mask nor a probability.`);
  }

  protected rejectMaskWithProbability({ mask, probability }: SampleOptions): void {
    if (mask !== undefined && probability !== undefined)
      throw invalidArgument("Only one of `mask` or `probability` can be given to sample.");
  }

  /** Returns `value` if it is in the space. @throws INVALID_ARGUMENT otherwise. */
  protected checkMember(value: unknown): T {
    if (this.contains(value)) return value;
    throw invalidArgument(`${formatValue(value)} is not in ${this.toString()}.`);
  }

  /** Copies the state of the random streams of `other`. */
  copyStream(other: Space): void {
    this.startStream(0);
    this.random.setState(other.random.getState());
  }

  /** Advances the random stream by one number. */
  skipDraw(): void {
    this.random.random();
  }
}

/** Formats a value for an error message, truncated. */
export function formatValue(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (value instanceof Promise) return "a Promise";
  const plain = ArrayBuffer.isView(value) ? Array.from(value as Int8Array) : value;
  return excerpt(JSON.stringify(plain) ?? typeof value, 120);
}
