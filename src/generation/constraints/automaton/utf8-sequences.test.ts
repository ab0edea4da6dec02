import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ANY_CHARACTER, characterSet } from "../regex/character-set.js";
import { utf8Sequences } from "./utf8-sequences.js";

describe("utf8Sequences", () => {
  const sequences = utf8Sequences(ANY_CHARACTER);

  it("contains the bytes of each character in exactly one sequence", () => {
    const hits = (code: number) => {
      const bytes = Buffer.from(String.fromCodePoint(code));
      return sequences.filter(
        (ranges) =>
          ranges.length === bytes.length && ranges.every(([first, last], i) => bytes[i] >= first && bytes[i] <= last),
      ).length;
    };
    const wrong: number[] = [];
    for (let code = 0; code <= 0x10ffff; code++) {
      if (code === 0xd800) code = 0xe000;
      if (hits(code) !== 1) wrong.push(code);
    }
    expect(wrong).toEqual([]);
  });

  it("contains as many byte strings as the set has characters", () => {
    const code = fc.integer({ min: 0, max: 0x10ffff });
    fc.assert(
      fc.property(fc.array(fc.tuple(code, code), { maxLength: 4 }), (pairs) => {
        const set = characterSet(pairs.map(([a, b]) => [Math.min(a, b), Math.max(a, b)]));
        const characters = set.reduce((sum, [first, last]) => sum + last - first + 1, 0);
        const texts = utf8Sequences(set).map((ranges) =>
          ranges.reduce((n, [first, last]) => n * (last - first + 1), 1),
        );
        expect(texts.reduce((sum, n) => sum + n, 0)).toBe(characters);
      }),
    );
  });
});
