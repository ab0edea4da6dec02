import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { isNumberArray, nestArray, numbersFromJson } from "./arrays.js";
import { formatShape } from "./array-text.js";
import { checkWeights } from "./discrete.js";
import { Space, type SampleOptions } from "./space.js";
import { countElements } from "../../core/numbers.js";

/** Arrays of zeros and ones. */
export class MultiBinary extends Space<Int8Array> {
  override readonly shape: readonly number[];
  private readonly size: number;

  constructor(readonly n: number | readonly number[]) {
    const shape = typeof n === "number" ? [n] : [...n];
    super(shape);
    if (shape.length === 0 || shape.some((extent) => !Number.isInteger(extent) || extent <= 0))
      throw invalidArgument(`n (counts) have to be positive, actual value: ${JSON.stringify(n)}`);
    this.shape = shape;
    this.size = countElements(shape);
  }

  /** Samples a member; a mask has 0 or 1 for a fixed element and 2 for a random one. */
  override sample(options: SampleOptions = {}): Int8Array {
    this.rejectMaskWithProbability(options);
    if (options.probability !== undefined) {
      const probabilities = checkWeights(options.probability, this.size, "probability");
      return Int8Array.from(probabilities, (probability) => (this.random.random() <= probability ? 1 : 0));
    }
    const tossCoins = () => Int8Array.from(this.random.integersArray(0, 2, this.size, "int8"));
    if (options.mask === undefined) return tossCoins();
    const mask = checkWeights(options.mask, this.size, "mask");
    if (mask.some((value) => value !== 0 && value !== 1 && value !== 2))
      throw invalidArgument(`All values of the mask must be 0, 1 or 2, actual values: ${mask.join(", ")}`);
    return tossCoins().map((toss, i) => (mask[i] === 2 ? toss : mask[i]));
  }

  override contains(value: unknown): value is Int8Array {
    return (
      isNumberArray(value) && value.length === this.size && Array.from(value).every((bit) => bit === 0 || bit === 1)
    );
  }

  override encode(value: Int8Array): JsonValue {
    return nestArray(value, this.shape);
  }

  override decode(json: JsonValue): Int8Array {
    return Int8Array.from(this.checkMember(numbersFromJson(json)));
  }

  override get flatSize(): number {
    return this.size;
  }

  override flatten(value: Int8Array): number[] {
    return Array.from(value);
  }

  override unflatten(flat: ArrayLike<number>): Int8Array {
    return Int8Array.from(this.checkMember(Array.from(flat)));
  }

  override toString(): string {
    return `MultiBinary(${typeof this.n === "number" ? this.n : formatShape(this.shape)})`;
  }
}
