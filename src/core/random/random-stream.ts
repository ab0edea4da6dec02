import { bounded32, bounded64, boundedNarrow, boundedMasked32 } from "./bounded.js";
import { Pcg64, type Pcg64State } from "./pcg64.js";
import { SeedSequence, type Seed } from "./seed-sequence.js";
import { standardExponential, standardNormal } from "./ziggurat.js";

export { SeedSequence, type Seed } from "./seed-sequence.js";

/** A stream's state as plain JSON. */
export type RandomState = Pcg64State;

/** Types whose array draws NumPy makes from pieces of a word; a plain integer is "int64". */
export type IntegerDtype = "bool" | "int8" | "uint8" | "int16" | "uint16" | "int32" | "uint32" | "int64";

export interface ChoiceOptions {
  /** One weight for each value; they must add up to 1. */
  readonly probabilities?: ArrayLike<number>;
}

/**
 * A seeded stream of random numbers: draw for draw what NumPy's
 * `Generator(PCG64(SeedSequence(seed)))` gives. Without a seed it starts from the system's entropy.
 */
export class RandomStream {
  private readonly bitGenerator: Pcg64;

  /**
   * @param spawnKey names an independent stream of the same seed, as NumPy's `SeedSequence.spawn`
   * does.
   */
  constructor(seed: Seed = readSystemEntropy(), spawnKey: readonly number[] = []) {
    this.bitGenerator = new Pcg64(new SeedSequence(seed, spawnKey));
  }

  /** Creates a stream that continues from a saved state. */
  static fromState(state: RandomState): RandomStream {
    const stream = new RandomStream(0);
    stream.setState(state);
    return stream;
  }

  getState(): RandomState {
    return this.bitGenerator.getState();
  }

  setState(state: RandomState): void {
    this.bitGenerator.setState(state);
  }

  /** A double in [0, 1). */
  random(): number {
    return this.bitGenerator.nextDouble();
  }

  /** A float32 in [0, 1). */
  randomFloat32(): number {
    return (this.bitGenerator.next32() >>> 8) / 16777216;
  }

  /** 64 random bits. */
  bits64(): bigint {
    return this.bitGenerator.next64();
  }

  /** An integer in [low, high); with one argument in [0, low). Both must be safe integers. */
  integers(low: number, high?: number): number {
    const from = high === undefined ? 0 : low;
    const range = (high ?? low) - 1 - from;
    if (!(range >= 0)) throw new RangeError(`integers: low (${from}) must be below high (${high ?? low}).`);
    if (range <= 0xffffffff) return from + bounded32(this.bitGenerator, range);
    return Number(BigInt(from) + bounded64(this.bitGenerator, BigInt(high ?? low) - 1n - BigInt(from)));
  }

  /** An integer in [low, high] of up to 64 bits. */
  integers64(low: bigint, high: bigint): bigint {
    if (low > high) throw new RangeError(`integers64: low (${low}) must not be above high (${high}).`);
    return low + bounded64(this.bitGenerator, high - low);
  }

  /** `size` integers in [low, high), drawn as one NumPy array of the given type. */
  integersArray(low: number, high: number, size: number, dtype: IntegerDtype = "int64"): number[] {
    const range = high - 1 - low;
    if (!(range >= 0)) throw new RangeError(`integersArray: low (${low}) must be below high (${high}).`);
    const width = dtype === "bool" ? 1 : dtype.endsWith("t8") ? 8 : dtype.endsWith("16") ? 16 : undefined;
    if (width === undefined) return Array.from({ length: size }, () => this.integers(low, high));
    return boundedNarrow(this.bitGenerator, range, width, size).map((value) => low + value);
  }

  /** A double in [low, high). */
  uniform(low = 0, high = 1): number {
    return low + (high - low) * this.bitGenerator.nextDouble();
  }

  normal(mean = 0, standardDeviation = 1): number {
    return mean + standardDeviation * standardNormal(this.bitGenerator);
  }

  /** An exponential value with the given mean. */
  exponential(scale = 1): number {
    return scale * standardExponential(this.bitGenerator);
  }

  /** The number of trials up to the first success, at least 1. */
  geometric(probability: number): number {
    if (!(probability > 0 && probability <= 1))
      throw new RangeError(`geometric: the probability must be in (0, 1], got ${probability}.`);
    if (probability < 1 / 3) return Math.ceil(-standardExponential(this.bitGenerator) / Math.log1p(-probability));
    const draw = this.bitGenerator.nextDouble();
    let trials = 1;
    let term = probability;
    let sum = probability;
    while (draw > sum) {
      term *= 1 - probability;
      sum += term;
      trials++;
    }
    return trials;
  }

  /** One of the values, all equally likely or by `probabilities`. */
  choice<T>(values: readonly T[], options?: ChoiceOptions): T {
    return values[this.choiceIndex(values.length, options)];
  }

  /** An index in [0, count), all equally likely or by `probabilities`. */
  choiceIndex(count: number, { probabilities }: ChoiceOptions = {}): number {
    if (probabilities === undefined) return this.integers(0, count);
    return searchRight(computeCdf(probabilities, count), this.bitGenerator.nextDouble());
  }

  /**
   * `size` different indices in [0, count). `shuffle: false` leaves their order to the method of
   * drawing.
   */
  sampleIndices(count: number, size: number, options: ChoiceOptions & { shuffle?: boolean } = {}): number[] {
    const { probabilities, shuffle = true } = options;
    if (size > count) throw new RangeError(`sampleIndices: cannot take ${size} different values out of ${count}.`);
    if (probabilities !== undefined) return this.sampleWeighted(Float64Array.from(probabilities), count, size);
    if (count > 10_000 && size > Math.floor(count / (shuffle ? 50 : 20))) {
      const all = Array.from({ length: count }, (_, i) => i);
      this.shuffleTail(all, Math.max(count - size, 1));
      return all.slice(count - size);
    }
    const selected = new Set<number>();
    for (let last = count - size; last < count; last++) {
      const value = bounded32(this.bitGenerator, last);
      selected.add(selected.has(value) ? last : value);
    }
    const indices = [...selected];
    if (shuffle) this.shuffleTail(indices, 1);
    return indices;
  }

  /** Shuffles in place (Fisher and Yates, from the end). */
  shuffle(values: { readonly length: number; [index: number]: unknown }): void {
    for (let i = values.length - 1; i > 0; i--) {
      const j = boundedMasked32(this.bitGenerator, i);
      const swapped = values[i];
      values[i] = values[j];
      values[j] = swapped;
    }
  }

  /** The integers 0 ... count - 1 in random order. */
  permutation(count: number): number[] {
    const values = Array.from({ length: count }, (_, i) => i);
    this.shuffle(values);
    return values;
  }

  private shuffleTail(values: number[], first: number): void {
    for (let i = values.length - 1; i >= first; i--) {
      const j = bounded32(this.bitGenerator, i);
      [values[i], values[j]] = [values[j], values[i]];
    }
  }

  /** Draws all that are missing at once, keeps the new ones, and repeats without their weight. */
  private sampleWeighted(weights: Float64Array, count: number, size: number): number[] {
    const found: number[] = [];
    if (weights.filter((weight) => weight > 0).length < size)
      throw new RangeError(`sampleIndices: fewer than ${size} probabilities are above 0.`);
    while (found.length < size) {
      const draws = Array.from({ length: size - found.length }, () => this.bitGenerator.nextDouble());
      for (const index of found) weights[index] = 0;
      const cdf = computeCdf(weights, count, found.length === 0);
      found.push(...new Set(draws.map((draw) => searchRight(cdf, draw))));
    }
    return found;
  }
}

/** Running sums divided by the last. */
function computeCdf(weights: ArrayLike<number>, count: number, mustSumToOne = true): Float64Array {
  if (weights.length !== count) throw new RangeError(`Expected ${count} probabilities, got ${weights.length}.`);
  const sums = new Float64Array(count);
  let sum = 0;
  for (let i = 0; i < count; i++) {
    if (!(weights[i] >= 0)) throw new RangeError(`A probability must be at least 0, got ${weights[i]}.`);
    sum += weights[i];
    sums[i] = sum;
  }
  if (mustSumToOne && !(Math.abs(sum - 1) < 1e-8))
    throw new RangeError(`Probabilities must add up to 1, these add up to ${sum}.`);
  for (let i = 0; i < count; i++) sums[i] /= sum;
  return sums;
}

/** The first index whose value is above `value`. */
function searchRight(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function readSystemEntropy(): bigint {
  return crypto.getRandomValues(new BigUint64Array(2)).reduce((value, word) => (value << 64n) | word, 0n);
}
