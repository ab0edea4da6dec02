import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleMask, type SampleOptions, type SpaceSeed } from "./space.js";

/** Probability that a sampled sequence ends after each element. */
const STOP_PROBABILITY = 0.25;

/** Lists of any length with elements of one space. */
export class Sequence<T = unknown> extends Space<readonly T[]> {
  constructor(readonly featureSpace: Space<T>) {
    super();
  }

  override get parts(): readonly Space[] {
    return [this.featureSpace];
  }

  override seed(seed?: SpaceSeed): SpaceSeed {
    return this.seedWithParts(seed);
  }

  /**
   * Samples a member; a mask or probability is [length, list of lengths, or null; element mask].
   */
  override sample(options: SampleOptions = {}): readonly T[] {
    this.rejectMaskWithProbability(options);
    const restriction = options.mask ?? options.probability;
    if (restriction !== undefined && (!Array.isArray(restriction) || restriction.length !== 2))
      throw invalidArgument("Sequence takes a mask of two parts: [length or null, mask of the elements].");
    const [lengths, inner] = (restriction ?? []) as [
      number | ArrayLike<number> | null | undefined,
      SampleMask | undefined,
    ];
    const length = this.sampleLength(lengths);
    const part = options.mask === undefined ? { probability: inner ?? undefined } : { mask: inner ?? undefined };
    return Array.from({ length }, () => this.featureSpace.sample(part));
  }

  private sampleLength(lengths: number | ArrayLike<number> | null | undefined): number {
    if (lengths === null || lengths === undefined) return this.random.geometric(STOP_PROBABILITY);
    const possible = typeof lengths === "number" ? [lengths] : Array.from(lengths);
    if (possible.some((length) => !Number.isInteger(length) || length < 0))
      throw invalidArgument(`Lengths must be integers of at least 0, actual values: ${possible.join(", ")}`);
    return typeof lengths === "number" ? lengths : this.random.choice(possible);
  }

  override contains(value: unknown): value is readonly T[] {
    return Array.isArray(value) && value.every((element) => this.featureSpace.contains(element));
  }

  override encode(value: readonly T[]): JsonValue {
    return value.map((element) => this.featureSpace.encode(element));
  }

  override decode(json: JsonValue): readonly T[] {
    if (!Array.isArray(json)) return this.checkMember(json);
    return (json as readonly JsonValue[]).map((element) => this.featureSpace.decode(element));
  }

  override flatten(value: readonly T[]): number[] {
    return value.flatMap((element) => this.featureSpace.flatten(element));
  }

  override unflatten(flat: ArrayLike<number>): readonly T[] {
    const size = this.featureSpace.flatSize;
    if (size === undefined || flat.length % size !== 0)
      throw invalidArgument(`${flat.length} numbers cannot be cut into elements of ${this.toString()}.`);
    const all = Array.from(flat);
    return Array.from({ length: flat.length / size }, (_, i) =>
      this.featureSpace.unflatten(all.slice(i * size, (i + 1) * size)),
    );
  }

  override toString(): string {
    return `Sequence(${this.featureSpace.toString()}, stack=False)`;
  }
}
