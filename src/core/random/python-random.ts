import { MersenneTwister, type MersenneTwisterState } from "./mersenne-twister.js";

/** A stream of random numbers that equals CPython's `random.Random(seed)`, draw for draw. */
export class PythonRandom {
  private readonly bitGenerator: MersenneTwister;

  /** @param seed an integer; its sign has no effect, as in CPython. */
  constructor(seed: number | bigint) {
    this.bitGenerator = new MersenneTwister(splitWords(BigInt(seed)));
  }

  getState(): MersenneTwisterState {
    return this.bitGenerator.getState();
  }

  setState(state: MersenneTwisterState): void {
    this.bitGenerator.setState(state);
  }

  /** Draws `count` bits as an integer, 1 to 32. */
  getRandBits(count: number): number {
    return this.bitGenerator.next32() >>> (32 - count);
  }

  /** Draws a double in [0, 1) with 53 random bits. */
  random(): number {
    const high = this.bitGenerator.next32() >>> 5;
    return (high * 67108864 + (this.bitGenerator.next32() >>> 6)) / 9007199254740992;
  }

  /** Draws a double between `low` and `high`. */
  uniform(low: number, high: number): number {
    return low + (high - low) * this.random();
  }

  /** Draws an integer in [low, high], which span less than 2^32 values. */
  randInt(low: number, high: number): number {
    return low + this.drawBelow(high - low + 1);
  }

  /** Draws one of the values, all equally likely. */
  choice<T>(values: ArrayLike<T>): T {
    return values[this.drawBelow(values.length)];
  }

  /** Shuffles in place (Fisher and Yates, from the end). */
  shuffle(values: unknown[]): void {
    for (let i = values.length - 1; i > 0; i--) {
      const j = this.drawBelow(i + 1);
      [values[i], values[j]] = [values[j], values[i]];
    }
  }

  /** Draws `count` of the values without replacement. */
  sample<T>(values: ArrayLike<T>, count: number): T[] {
    const size = values.length;
    if (!(count >= 0 && count <= size))
      throw new RangeError(`sample: cannot take ${count} different values out of ${size}.`);
    // CPython copies the values where a set of the chosen indices would take more room than they
    // do.
    const setSize = 21 + (count > 5 ? 4 ** Math.ceil(Math.log(count * 3) / Math.log(4)) : 0);
    if (size <= setSize) {
      const pool = Array.from(values);
      return Array.from({ length: count }, (_, i) => {
        const j = this.drawBelow(size - i);
        const drawn = pool[j];
        pool[j] = pool[size - i - 1];
        return drawn;
      });
    }
    const indices = new Set<number>();
    while (indices.size < count) indices.add(this.drawBelow(size));
    return Array.from(indices, (i) => values[i]);
  }

  /** Draws an integer in [0, limit); a limit of 1 also takes bits. */
  private drawBelow(limit: number): number {
    if (!(limit > 0 && limit < 4294967296)) throw new RangeError(`Cannot draw one of ${limit} values.`);
    const bits = 32 - Math.clz32(limit);
    for (;;) {
      const drawn = this.getRandBits(bits);
      if (drawn < limit) return drawn;
    }
  }
}

/** Splits a magnitude into 32-bit words, the lowest first; 0 is one word. */
function splitWords(seed: bigint): number[] {
  const words: number[] = [];
  let rest = seed < 0n ? -seed : seed;
  do {
    words.push(Number(rest & 0xffffffffn));
    rest >>= 32n;
  } while (rest > 0n);
  return words;
}
