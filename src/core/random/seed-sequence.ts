const POOL_SIZE = 4;

/** What a stream can be seeded with: an integer of any size, or several of them. */
export type Seed = number | bigint | readonly (number | bigint)[];

/**
 * Turns a seed into well mixed words (O'Neill's seed_seq alternative, as in NumPy's SeedSequence).
 * Different `spawnKey`s of one seed give independent streams.
 */
export class SeedSequence {
  private readonly pool: Uint32Array;

  /** @throws RangeError when a part of the seed is negative or not an integer. */
  constructor(seed: Seed, spawnKey: readonly number[] = []) {
    const entropy = (Array.isArray(seed) ? seed : [seed]).flatMap((part: number | bigint) => toWords(part));
    if (spawnKey.length > 0) {
      while (entropy.length < POOL_SIZE) entropy.push(0);
      entropy.push(...spawnKey.flatMap((part) => toWords(part)));
    }
    this.pool = mixEntropy(entropy);
  }

  /** The first `count` 32-bit words of the sequence. */
  generateState(count: number): Uint32Array {
    const state = new Uint32Array(count);
    let constant = 0x8b51f9dd;
    for (let i = 0; i < count; i++) {
      let word = this.pool[i % POOL_SIZE] ^ constant;
      constant = Math.imul(constant, 0x58f38ded);
      word = Math.imul(word, constant);
      state[i] = word ^ (word >>> 16);
    }
    return state;
  }
}

/** 32-bit words of a non-negative integer, low word first; at least one. */
function toWords(value: number | bigint): number[] {
  if (typeof value === "number" && !Number.isSafeInteger(value))
    throw new RangeError(`A seed must be an integer, got ${value}. Use a bigint above 2^53.`);
  let rest = BigInt(value);
  if (rest < 0n) throw new RangeError(`A seed must be at least 0, got ${value}.`);
  const parts: number[] = [];
  do {
    parts.push(Number(rest & 0xffffffffn));
    rest >>= 32n;
  } while (rest > 0n);
  return parts;
}

function mixEntropy(entropy: readonly number[]): Uint32Array {
  const pool = new Uint32Array(POOL_SIZE);
  let constant = 0x43b0d7e5;
  const hash = (value: number) => {
    let word = value ^ constant;
    constant = Math.imul(constant, 0x931e8875);
    word = Math.imul(word, constant);
    return word ^ (word >>> 16);
  };
  const mixInto = (target: number, value: number) => {
    const word = Math.imul(0xca01f9dd, pool[target]) - Math.imul(0x4973f715, hash(value));
    pool[target] = word ^ (word >>> 16);
  };
  for (let i = 0; i < POOL_SIZE; i++) pool[i] = hash(entropy[i] ?? 0);
  for (let source = 0; source < POOL_SIZE; source++) {
    for (let target = 0; target < POOL_SIZE; target++) {
      if (source !== target) mixInto(target, pool[source]);
    }
  }
  for (let source = POOL_SIZE; source < entropy.length; source++) {
    for (let target = 0; target < POOL_SIZE; target++) mixInto(target, entropy[source]);
  }
  return pool;
}
