import type { CharacterSet } from "../regex/character-set.js";

/** An inclusive range of bytes. */
export type ByteRange = readonly [first: number, last: number];

/** Greatest code points of 1, 2, 3 and 4 bytes. */
const MAX_CODE_POINTS = [0x7f, 0x7ff, 0xffff, 0x10ffff];

/**
 * Returns the UTF-8 encodings of a set's characters as sequences of byte ranges; each character
 * matches exactly one sequence.
 */
export function utf8Sequences(set: CharacterSet): ByteRange[][] {
  return set.flatMap(([first, last]) => {
    const result: ByteRange[][] = [];
    let from = first;
    MAX_CODE_POINTS.forEach((limit, index) => {
      if (from > limit || from > last) return;
      result.push(...sequencesOfLength(from, Math.min(last, limit), index + 1));
      from = limit + 1;
    });
    return result;
  });
}

/**
 * Splits a range of characters of `length` bytes until the bytes of each part vary independently.
 */
function sequencesOfLength(first: number, last: number, length: number): ByteRange[][] {
  for (let tail = 1; tail < length; tail++) {
    const mask = 64 ** tail - 1;
    if (Math.floor(first / 64 ** tail) === Math.floor(last / 64 ** tail)) continue;
    if ((first & mask) !== 0) {
      const end = first | mask;
      return [...sequencesOfLength(first, end, length), ...sequencesOfLength(end + 1, last, length)];
    }
    if ((last & mask) !== mask) {
      const start = last - (last & mask);
      return [...sequencesOfLength(first, start - 1, length), ...sequencesOfLength(start, last, length)];
    }
  }
  const ends = encodeCodePoint(last, length);
  return [encodeCodePoint(first, length).map((byte, i) => [byte, ends[i]])];
}

/** Marker bits of the first byte of a character of 1, 2, 3 or 4 bytes. */
const LEAD_BYTES = [0, 0xc0, 0xe0, 0xf0];

function encodeCodePoint(code: number, length: number): number[] {
  const bytes = Array.from({ length }, (_, i) => 0x80 | (Math.floor(code / 64 ** (length - 1 - i)) & 0x3f));
  bytes[0] = LEAD_BYTES[length - 1] | Math.floor(code / 64 ** (length - 1));
  return bytes;
}
