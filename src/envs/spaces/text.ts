import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { checkWeights } from "./discrete.js";
import { Space, type SampleOptions } from "./space.js";

const ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

export interface TextOptions {
  readonly minLength?: number;
  /** A string keeps its order; a set is sorted. Default: letters and digits. */
  readonly charset?: string | ReadonlySet<string>;
}

/** Strings of minLength to maxLength characters from a set. */
export class Text extends Space<string> {
  readonly maxLength: number;
  readonly minLength: number;
  /** Characters in the order of masks and of `flatten`. */
  readonly characters: readonly string[];
  private readonly indices: ReadonlyMap<string, number>;

  constructor(maxLength: number, { minLength = 1, charset = ALPHANUMERIC }: TextOptions = {}) {
    super();
    if (!Number.isInteger(minLength) || !Number.isInteger(maxLength))
      throw invalidArgument(`Text lengths must be integers, actual values: ${minLength}, ${maxLength}`);
    if (minLength < 0) throw invalidArgument(`Minimum text length must be non-negative, actual value: ${minLength}`);
    if (minLength > maxLength)
      throw invalidArgument(
        `The min_length must be less than or equal to the max_length, min_length: ${minLength}, max_length: ${maxLength}`,
      );
    this.maxLength = maxLength;
    this.minLength = minLength;
    this.characters = typeof charset === "string" ? Array.from(new Set(charset)) : [...charset].sort();
    const invalidCharacters = this.characters.filter((character) => Array.from(character).length !== 1);
    if (invalidCharacters.length > 0)
      throw invalidArgument(
        `Each element of a charset must be one character, got ${JSON.stringify(invalidCharacters)}.`,
      );
    this.indices = new Map(this.characters.map((character, i) => [character, i]));
  }

  /**
   * Samples a member; a mask or probability is [length or null, one weight per character or null].
   */
  override sample(options: SampleOptions = {}): string {
    this.rejectMaskWithProbability(options);
    const count = this.characters.length;
    let length: number | undefined;
    let probabilities = Array.from({ length: count }, () => 1 / count);
    const given = options.mask ?? options.probability;
    if (given !== undefined) {
      const [requestedLength, weights] = this.readRestriction(given);
      length = requestedLength ?? undefined;
      if (weights !== null && weights !== undefined) {
        probabilities = checkWeights(weights, count, "mask");
        const sum = probabilities.reduce((total, weight) => total + weight, 0);
        if (options.mask !== undefined && sum > 0) probabilities = probabilities.map((weight) => weight / sum);
      }
    }
    length ??= this.random.integers(this.minLength, this.maxLength + 1);
    if (probabilities.every((weight) => weight === 0)) {
      if (this.minLength === 0) return "";
      throw invalidArgument(`The mask allows no character, but a text has at least ${this.minLength}.`);
    }
    return Array.from({ length }, () => this.random.choice(this.characters, { probabilities })).join("");
  }

  private readRestriction(given: unknown): [length: number | null | undefined, weights: unknown] {
    if (!Array.isArray(given) || given.length !== 2)
      throw invalidArgument("Text takes a mask of two parts: [length or null, character weights or null].");
    const [length, weights] = given as [number | null | undefined, unknown];
    if (typeof length === "number" && !(length >= this.minLength && length <= this.maxLength))
      throw invalidArgument(
        `The length must be between ${this.minLength} and ${this.maxLength}, actual length: ${length}`,
      );
    return [length, weights];
  }

  override contains(value: unknown): value is string {
    if (typeof value !== "string") return false;
    const characters = Array.from(value);
    return (
      characters.length >= this.minLength &&
      characters.length <= this.maxLength &&
      characters.every((character) => this.indices.has(character))
    );
  }

  override encode(value: string): JsonValue {
    return value;
  }

  override decode(json: JsonValue): string {
    return this.checkMember(json);
  }

  override get flatSize(): number {
    return this.maxLength;
  }

  /** Returns the index of each character, padded with the number of characters. */
  override flatten(value: string): number[] {
    const characters = Array.from(value);
    return Array.from({ length: this.maxLength }, (_, i) => this.indices.get(characters[i]) ?? this.characters.length);
  }

  override unflatten(flat: ArrayLike<number>): string {
    return this.checkMember(Array.from(flat, (index) => this.characters[index] ?? "").join(""));
  }

  override toString(): string {
    return `Text(${this.minLength}, ${this.maxLength}, charset=${[...this.characters].sort().join("")})`;
  }
}
