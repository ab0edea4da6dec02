import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sharedPrefixLength } from "./sequence-batch.js";
import { compareTokens, packSharedPrefixes } from "./prefix-packing.js";

/** Few tokens, so that sequences begin alike. */
const sequence = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 8 });
const sequences = fc.array(sequence, { minLength: 1, maxLength: 12 });

describe("layRows", () => {
  it("finds each sequence again at the beginning of its row", () => {
    fc.assert(
      fc.property(sequences, fc.constantFrom(1, 4, 64), (given, hiddenSize) => {
        const { groups, positions } = packSharedPrefixes(given, hiddenSize);
        const found = positions.map(({ group, row, prefix }, i) => {
          expect(prefix).toBe(groups[group].prefix.length);
          return [...groups[group].prefix, ...groups[group].rows[row]].slice(0, given[i].length);
        });
        expect(found).toEqual(given);
      }),
    );
  });

  it("has no row that is another one's beginning, and none that nobody asked for", () => {
    fc.assert(
      fc.property(sequences, (given) => {
        const rows = packSharedPrefixes(given, 16).groups.flatMap(({ prefix, rows }) =>
          rows.map((row) => [...prefix, ...row]),
        );
        for (const row of rows) expect(given).toContainEqual(row);
        for (const [i, row] of rows.entries())
          for (const other of rows.slice(i + 1))
            expect(sharedPrefixLength(row, other)).toBeLessThan(Math.min(row.length, other.length));
      }),
    );
  });

  it("computes a long beginning that many share once", () => {
    const prompt = Array.from({ length: 50 }, (_, i) => i);
    const { groups } = packSharedPrefixes(
      [0, 1, 2, 3].map((token) => [...prompt, token]),
      64,
    );
    expect(groups).toEqual([{ prefix: prompt, rows: [[3], [2], [1], [0]] }]);
  });

  it("lays the turns of one conversation out as one row", () => {
    const whole = Array.from({ length: 20 }, (_, i) => i);
    const { groups, positions } = packSharedPrefixes([whole.slice(0, 5), whole.slice(0, 12), whole], 64);
    expect(groups).toEqual([{ prefix: [], rows: [whole] }]);
    expect(new Set(positions.map(({ row }) => row))).toEqual(new Set([0]));
  });
});

describe("compare", () => {
  it("orders as words are ordered", () => {
    const ordered = [[], [0], [0, 5], [1], [1, 0], [1, 0, 0], [2]];
    fc.assert(
      fc.property(fc.shuffledSubarray(ordered, { minLength: ordered.length }), (shuffled) => {
        expect([...shuffled].sort(compareTokens)).toEqual(ordered);
      }),
    );
  });
});
