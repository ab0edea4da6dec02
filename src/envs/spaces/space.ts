import { LlamaGymError } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import type { JsonValue } from "../../core/json.js";
import { createSeededStream } from "../seeded-stream.js";

/** Weights or 0/1 flags for what may be drawn, in the space's own structure. */
export type SampleMask =
  | ArrayLike<number>
  | readonly (SampleMask | number | null | undefined)[]
  | { readonly [key: string]: SampleMask | undefined };

export interface SampleOptions {
  /** 1 for what may be drawn, 0 for what may not. */
  readonly mask?: SampleMask;
  /** How likely each value is. */
  readonly probability?: SampleMask;
}

/** A seed, or for a space of spaces one for each part. */
export type SpaceSeed = number | bigint | readonly SpaceSeed[] | { readonly [key: string]: SpaceSeed };

/**
 * The set that observations or actions come from. `seed` and `sample` draw what Gymnasium draws; `toString` prints what
 * it prints. Arrays are flat and row-major, `shape` says how to read them.
 */
export abstract class Space<T = unknown> {
  /** Extents of an array space; undefined where a value is not one array. */
  readonly shape: readonly number[] | undefined;
  private stream: RandomStream | undefined;

  constructor(shape?: readonly number[]) {
    this.shape = shape;
  }

  /** Draws a member; `mask` or `probability` restrict it where the space can be restricted. */
  abstract sample(options?: SampleOptions): T;
  abstract contains(value: unknown): value is T;
  /** A member as JSON. */
  abstract encode(value: T): JsonValue;
  /** The member that `encode` gave. */
  abstract decode(json: JsonValue): T;
  /** Length of `flatten`'s result; undefined when members have no fixed length. */
  abstract readonly flatSize: number | undefined;
  /** A member as numbers: arrays as they are, categories one-hot, parts joined. */
  abstract flatten(value: T): number[];
  /** The member that `flatten` gave. */
  abstract unflatten(flat: ArrayLike<number>): T;
  /** The space as Gymnasium prints it. */
  abstract toString(): string;

  /** Equality of the sets, whatever their random streams. */
  equals(other: Space): boolean {
    return this.constructor === other.constructor && this.toString() === other.toString();
  }

  /** Starts the space's random stream, and those of its parts; gives the seeds used, in the space's structure. */
  seed(seed?: SpaceSeed): SpaceSeed {
    return this.startStream(seed);
  }

  protected get random(): RandomStream {
    if (this.stream === undefined) this.startStream();
    return this.stream as RandomStream;
  }

  protected startStream(seed?: SpaceSeed): number | bigint {
    if (typeof seed === "object") {
      throw new LlamaGymError("INVALID_ARGUMENT", `${this.toString()} takes one seed, got ${JSON.stringify(seed)}.`);
    }
    const seeded = createSeededStream(seed);
    this.stream = seeded.stream;
    return seeded.seed;
  }

  /** One seed for each of `count` parts, drawn from a stream of this seed. */
  protected drawPartSeeds(seed: SpaceSeed, count: number): number[] {
    this.startStream(seed);
    return Array.from({ length: count }, () => this.random.integers(0, 2147483647));
  }

  /** Refuses masks where the space has none. */
  protected rejectMask(options: SampleOptions | undefined): void {
    if (options?.mask !== undefined || options?.probability !== undefined) {
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `${this.constructor.name}.sample cannot be restricted by a mask or a probability.`,
      );
    }
  }

  protected rejectMaskWithProbability({ mask, probability }: SampleOptions): void {
    if (mask !== undefined && probability !== undefined) {
      throw new LlamaGymError("INVALID_ARGUMENT", "Only one of `mask` or `probability` can be given to sample.");
    }
  }

  /** `value` when it is in the space. @throws when it is not. */
  protected checkMember(value: unknown): T {
    if (this.contains(value)) return value;
    throw new LlamaGymError("INVALID_ARGUMENT", `${formatValue(value)} is not in ${this.toString()}.`);
  }

  /** Makes this space draw from now on what `other` would draw. */
  copyStream(other: Space): void {
    this.startStream(0);
    this.random.setState(other.random.getState());
  }

  /** Draws one number and drops it. */
  skipDraw(): void {
    this.random.random();
  }
}

/** A value in an error message, not too long. */
export function formatValue(value: unknown): string {
  const plain = ArrayBuffer.isView(value) ? Array.from(value as Int8Array) : value;
  const text = JSON.stringify(plain) ?? typeof value;
  return text.length > 120 ? `${text.slice(0, 120)}...` : text;
}
