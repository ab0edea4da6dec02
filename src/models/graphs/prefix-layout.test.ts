import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sharedPrefixLength } from "./sequence-batch.js";
import { compareTokens, layOutSequences } from "./prefix-layout.js";

/** Few distinct tokens, so that sequences share beginnings. */
const sequence = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 8 });
const sequences = fc.array(sequence, { minLength: 1, maxLength: 12 });

describe("layOutSequences", () => {
  it("places each sequence at the beginning of its row", () => {
    fc.assert(
      fc.property(sequences, fc.constantFrom(1, 4, 64), fc.boolean(), (given, hiddenSize, sharePrefixes) => {
        const { groups, positions } = layOutSequences(given, { hiddenSize, sharePrefixes });
        const found = positions.map(({ group, row, prefix }, i) => {
          expect(prefix).toBe(groups[group].prefix.length);
          return [...groups[group].prefix, ...groups[group].rows[row]].slice(0, given[i].length);
        });
        expect(found).toEqual(given);
      }),
    );
  });

  it("has no row that is the beginning of another, and only given rows", () => {
    fc.assert(
      fc.property(sequences, (given) => {
        const rows = layOutSequences(given, { hiddenSize: 16 }).groups.flatMap(({ prefix, rows }) =>
          rows.map((row) => [...prefix, ...row]),
        );
        for (const row of rows) expect(given).toContainEqual(row);
        for (const [i, row] of rows.entries())
          for (const other of rows.slice(i + 1))
            expect(sharedPrefixLength(row, other)).toBeLessThan(Math.min(row.length, other.length));
      }),
    );
  });

  it("computes a long shared beginning once", () => {
    const prompt = Array.from({ length: 50 }, (_, i) => i);
    const { groups } = layOutSequences(
      [0, 1, 2, 3].map((token) => [...prompt, token]),
      { hiddenSize: 64 },
    );
    expect(groups).toEqual([{ prefix: prompt, rows: [[3], [2], [1], [0]] }]);
  });

  it("has no prefix where little is shared", () => {
    const given = [0, 1, 2].map((token) => [7, 7, 7, token, token]);
    expect(layOutSequences(given, { hiddenSize: 64 }).groups.map(({ prefix }) => prefix)).toEqual([[]]);
  });

  it("lays the turns of one conversation out in one row", () => {
    const whole = Array.from({ length: 20 }, (_, i) => i);
    const { groups, positions } = layOutSequences([whole.slice(0, 5), whole.slice(0, 12), whole], { hiddenSize: 64 });
    expect(groups).toEqual([{ prefix: [], rows: [whole] }]);
    expect(new Set(positions.map(({ row }) => row))).toEqual(new Set([0]));
  });
});

describe("compareTokens", () => {
  it("orders sequences lexicographically", () => {
    const ordered = [[], [0], [0, 5], [1], [1, 0], [1, 0, 0], [2]];
    fc.assert(
      fc.property(fc.shuffledSubarray(ordered, { minLength: ordered.length }), (shuffled) => {
        expect([...shuffled].sort(compareTokens)).toEqual(ordered);
      }),
    );
  });
});
