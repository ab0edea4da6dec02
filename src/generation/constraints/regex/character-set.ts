/** Sorted ranges [first, last] of code points that neither overlap nor touch. */
export type CharacterSet = readonly (readonly [first: number, last: number])[];

/** Every character that UTF-8 can encode, so no surrogates. */
export const ANY_CHARACTER: CharacterSet = [
  [0, 0xd7ff],
  [0xe000, 0x10ffff],
];

/** JavaScript's \d, \w and \s. */
export const DIGIT_CHARACTERS: CharacterSet = [[0x30, 0x39]];
export const WORD_CHARACTERS: CharacterSet = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
export const WHITESPACE: CharacterSet = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];

/** Line terminators, which the dot does not match. */
export const LINE_TERMINATORS: CharacterSet = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];

/** Creates a set of ranges in any order; surrogates are left out. */
export function characterSet(ranges: CharacterSet): CharacterSet {
  return complement(complement(ranges));
}

export function union(...sets: readonly CharacterSet[]): CharacterSet {
  return characterSet(sets.flat());
}

/** Returns all characters outside of the ranges, which may be in any order. */
export function complement(ranges: CharacterSet): CharacterSet {
  const sorted = [...ranges].sort(([a], [b]) => a - b);
  const result: [number, number][] = [];
  for (const [first, last] of ANY_CHARACTER) {
    let from = first;
    for (const [start, end] of sorted) {
      if (start > last) break;
      if (start > from) result.push([from, start - 1]);
      from = Math.max(from, end + 1);
    }
    if (from <= last) result.push([from, last]);
  }
  return result;
}

export function intersection(a: CharacterSet, b: CharacterSet): CharacterSet {
  return complement([...complement(a), ...complement(b)]);
}

export function difference(a: CharacterSet, b: CharacterSet): CharacterSet {
  return complement([...complement(a), ...b]);
}
