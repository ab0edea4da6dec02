import { computeHighWord, type Pcg64 } from "./pcg64.js";

const WORD_MAX = 0xffffffff;
const TWO_64 = 1n << 64n;

/**
 * Uniform integer in [0, range], range < 2^32, by Lemire's multiplication with rejection (2019). No
 * draw when range is 0.
 */
export function bounded32(bits: Pcg64, range: number): number {
  if (range === 0) return 0;
  if (range === WORD_MAX) return bits.next32();
  const count = range + 1;
  let word = bits.next32();
  let low = Math.imul(word, count) >>> 0;
  if (low < count) {
    const threshold = (WORD_MAX - range) % count;
    while (low < threshold) {
      word = bits.next32();
      low = Math.imul(word, count) >>> 0;
    }
  }
  return computeHighWord(word, count, low);
}

/** Uniform integer in [0, range], range < 2^64; ranges below 2^32 take 32-bit draws. */
export function bounded64(bits: Pcg64, range: bigint): bigint {
  if (range <= BigInt(WORD_MAX)) return BigInt(bounded32(bits, Number(range)));
  if (range === TWO_64 - 1n) return bits.next64();
  const count = range + 1n;
  const threshold = (TWO_64 - 1n - range) % count;
  let product = bits.next64() * count;
  while (product % TWO_64 < threshold) product = bits.next64() * count;
  return product >> 64n;
}

/** Uniform integer in [0, limit] by masked rejection, as NumPy's shuffles draw; limit < 2^32. */
export function boundedMasked32(bits: Pcg64, limit: number): number {
  if (limit === 0) return 0;
  const mask = WORD_MAX >>> Math.clz32(limit);
  let value = (bits.next32() & mask) >>> 0;
  while (value > limit) value = (bits.next32() & mask) >>> 0;
  return value;
}

/**
 * Cuts 32-bit words into pieces of `width` bits, low piece first; what is left at the end is
 * dropped.
 */
function createBitReader(bits: Pcg64, width: 1 | 8 | 16): () => number {
  const mask = 2 ** width - 1;
  let word = 0;
  let remaining = 0;
  return () => {
    if (remaining === 0) {
      word = bits.next32();
      remaining = 32 / width;
    } else {
      word >>>= width;
    }
    remaining--;
    return word & mask;
  };
}

/** `size` integers in [0, range] of 1, 8 or 16 bits, drawn as one NumPy array of such a type. */
export function boundedNarrow(bits: Pcg64, range: number, width: 1 | 8 | 16, size: number): number[] {
  if (range === 0) return Array.from({ length: size }, () => 0);
  const next = createBitReader(bits, width);
  const rangeSize = 2 ** width;
  const count = range + 1;
  // A bool needs no product: one bit is the value.
  if (width === 1 || count === rangeSize) return Array.from({ length: size }, next);
  const threshold = (rangeSize - count) % count;
  return Array.from({ length: size }, () => {
    let product = next() * count;
    while (product % rangeSize < threshold) product = next() * count;
    return Math.floor(product / rangeSize);
  });
}
