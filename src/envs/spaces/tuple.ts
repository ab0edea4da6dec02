import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleMask, type SampleOptions, type SpaceSeed } from "./space.js";

export type SpacesOf<T extends readonly unknown[]> = { readonly [K in keyof T]: Space<T[K]> };

/** Tuples with one value per space. */
export class Tuple<T extends readonly unknown[] = readonly unknown[]> extends Space<T> {
  readonly spaces: readonly Space[];

  constructor(spaces: SpacesOf<T>) {
    super();
    this.spaces = checkSpaces(spaces, "Tuple");
  }

  override seed(seed?: SpaceSeed): SpaceSeed {
    if (seed === undefined) return this.spaces.map((space) => space.seed());
    const seeds = isSeedList(seed) ? seed : this.drawPartSeeds(seed, this.spaces.length);
    checkSeedCount(seeds, this.spaces.length, "Tuple");
    return this.spaces.map((space, i) => space.seed(seeds[i]));
  }

  /** Samples a member; a mask or probability is a list with one entry per part, undefined or null for an unrestricted part. */
  override sample(options: SampleOptions = {}): T {
    this.rejectMaskWithProbability(options);
    const parts = splitSampleOptions(options, this.spaces.length, "Tuple");
    return this.spaces.map((space, i) => space.sample(parts[i])) as unknown as T;
  }

  override contains(value: unknown): value is T {
    return (
      Array.isArray(value) &&
      value.length === this.spaces.length &&
      this.spaces.every((space, i) => space.contains(value[i]))
    );
  }

  override encode(value: T): JsonValue {
    return this.spaces.map((space, i) => space.encode(value[i]));
  }

  override decode(json: JsonValue): T {
    if (!Array.isArray(json) || json.length !== this.spaces.length) return this.checkMember(json);
    return this.spaces.map((space, i) => space.decode((json as readonly JsonValue[])[i])) as unknown as T;
  }

  override get flatSize(): number | undefined {
    return sumSizes(this.spaces);
  }

  override flatten(value: T): number[] {
    return this.spaces.flatMap((space, i) => space.flatten(value[i]));
  }

  override unflatten(flat: ArrayLike<number>): T {
    return unflattenParts(this.spaces, flat) as unknown as T;
  }

  override toString(): string {
    return `Tuple(${this.spaces.join(", ")})`;
  }
}

export function checkSpaces(spaces: readonly unknown[], name: string): readonly Space[] {
  spaces.forEach((space, i) => {
    if (!(space instanceof Space)) {
      throw invalidArgument(`Element ${i} of the ${name} is not a Space: ${String(space)}`);
    }
  });
  return [...spaces] as Space[];
}

export function isSeedList(seed: SpaceSeed): seed is readonly SpaceSeed[] {
  return Array.isArray(seed);
}

export function checkSeedCount(seeds: readonly SpaceSeed[], count: number, name: string): void {
  if (seeds.length !== count) {
    throw invalidArgument(`${name} takes ${count} seeds, got ${seeds.length}.`);
  }
}

/** Splits a list of masks or probabilities into the sampling options of each part. */
export function splitSampleOptions({ mask, probability }: SampleOptions, count: number, name: string): SampleOptions[] {
  const weights = mask ?? probability;
  if (weights === undefined) return Array.from({ length: count }, () => ({}));
  if (!Array.isArray(weights) || weights.length !== count) {
    throw invalidArgument(`${name} takes a list of ${count} masks, one for each part.`);
  }
  const parts = (weights as readonly (SampleMask | null | undefined)[]).map((part) => part ?? undefined);
  return parts.map((part) => (mask === undefined ? { probability: part } : { mask: part }));
}

/** Sums the parts' flat sizes; undefined when a part has none. */
export function sumSizes(spaces: readonly Space[]): number | undefined {
  let total = 0;
  for (const { flatSize } of spaces) {
    if (flatSize === undefined) return undefined;
    total += flatSize;
  }
  return total;
}

/** Splits concatenated flat values into the parts of several spaces. */
export function unflattenParts(spaces: readonly Space[], flat: ArrayLike<number>): unknown[] {
  const all = Array.from(flat);
  const size = sumSizes(spaces);
  if (size !== all.length) {
    throw invalidArgument(`Expected ${size ?? "no"} numbers for ${spaces.join(", ")}, got ${all.length}.`);
  }
  let offset = 0;
  return spaces.map((space) => {
    const part = all.slice(offset, offset + (space.flatSize ?? 0));
    offset += part.length;
    return space.unflatten(part);
  });
}
