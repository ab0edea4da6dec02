import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { formatArray } from "./array-text.js";
import {
  flattenNested,
  findHotIndex,
  isNumberArray,
  nestArray,
  numbersFromJson,
  type NestedNumbers,
} from "./arrays.js";
import { checkWeights, sampleMasked, sampleWeighted } from "./discrete.js";
import { Space, type SampleMask, type SampleOptions } from "./space.js";
import { countElements } from "../../core/numbers.js";

/** Arrays of integers, element i in start[i] ... start[i] + nvec[i] - 1. */
export class MultiDiscrete extends Space<Int32Array> {
  override readonly shape: readonly number[];
  readonly nvec: Int32Array;
  readonly start: Int32Array;

  constructor(nvec: NestedNumbers, { start }: { start?: NestedNumbers } = {}) {
    const counts = flattenNested(nvec, "nvec");
    const starts =
      start === undefined ? { values: counts.values.map(() => 0), shape: counts.shape } : flattenNested(start, "start");
    super(counts.shape);
    if (starts.shape.join() !== counts.shape.join())
      throw invalidArgument(
        `start and nvec (counts) should have the same shape, got [${starts.shape.join()}] and [${counts.shape.join()}]`,
      );
    if (counts.values.length === 0 || counts.values.some((count) => !(Number.isInteger(count) && count > 0)))
      throw invalidArgument(`nvec (counts) have to be positive, actual value: ${JSON.stringify(counts.values)}`);
    if (starts.values.some((value, i) => !Number.isInteger(value) || Math.abs(value) + counts.values[i] > 2147483647))
      throw invalidArgument("MultiDiscrete holds 32-bit integers; nvec or start is too large or not an integer.");
    this.shape = counts.shape;
    this.nvec = Int32Array.from(counts.values);
    this.start = Int32Array.from(starts.values);
  }

  /**
   * Samples a member; a mask or probability is a list with one entry per element, nested like the
   * space.
   */
  override sample(options: SampleOptions = {}): Int32Array {
    this.rejectMaskWithProbability(options);
    const { mask, probability } = options;
    if (mask !== undefined) {
      const parts = this.splitWeights(mask, "mask");
      return this.nvec.map((count, i) => this.start[i] + sampleMasked(this.random, count, parts[i]));
    }
    if (probability !== undefined) {
      const parts = this.splitWeights(probability, "probability");
      return this.nvec.map((count, i) => this.start[i] + this.sampleWeightedElement(count, parts[i]));
    }
    return this.nvec.map((count, i) => Math.floor(this.random.random() * count) + this.start[i]);
  }

  private sampleWeightedElement(count: number, probability: SampleMask): number {
    return sampleWeighted(this.random, count, normalizeWeights(checkWeights(probability, count, "probability")));
  }

  private splitWeights(weights: SampleMask, name: string): SampleMask[] {
    let parts = [weights];
    for (const extent of this.shape) {
      parts = parts.flatMap((part) => {
        if (!Array.isArray(part) || part.length !== extent)
          throw invalidArgument(`The ${name} must be a list with an entry for each of ${extent} elements.`);
        return part as SampleMask[];
      });
    }
    return parts;
  }

  override contains(value: unknown): value is Int32Array {
    return (
      isNumberArray(value) &&
      value.length === this.nvec.length &&
      this.nvec.every(
        (count, i) => Number.isInteger(value[i]) && value[i] >= this.start[i] && value[i] < this.start[i] + count,
      )
    );
  }

  override equals(other: Space): boolean {
    if (!(other instanceof MultiDiscrete) || !super.equals(other)) return false;
    return this.nvec.every((count, i) => count === other.nvec[i] && this.start[i] === other.start[i]);
  }

  override encode(value: Int32Array): JsonValue {
    return nestArray(value, this.shape);
  }

  override decode(json: JsonValue): Int32Array {
    return Int32Array.from(this.checkMember(numbersFromJson(json)));
  }

  override get flatSize(): number {
    return this.nvec.reduce((total, count) => total + count, 0);
  }

  override flatten(value: Int32Array): number[] {
    return Array.from(this.nvec).flatMap((count, i) =>
      Array.from({ length: count }, (_, k) => (k === value[i] - this.start[i] ? 1 : 0)),
    );
  }

  override unflatten(flat: ArrayLike<number>): Int32Array {
    let offset = 0;
    const values = this.nvec.map((count, i) => {
      const value = this.start[i] + findHotIndex(flat, offset, count);
      offset += count;
      return value;
    });
    return this.checkMember(values);
  }

  override toString(): string {
    const text = (values: Int32Array) => formatArray(values, this.shape, "integer");
    const start = this.start.every((value) => value === 0) ? "" : `, start=${text(this.start)}`;
    return `MultiDiscrete(${text(this.nvec)}${start})`;
  }

  /** Number of elements. */
  get size(): number {
    return countElements(this.shape);
  }
}

function normalizeWeights(weights: number[]): number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return Math.abs(sum - 1) > 1e-8 ? weights : weights.map((weight) => weight / sum);
}
