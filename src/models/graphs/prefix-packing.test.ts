import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tokensThatFit } from "../weights/micro-batch-memory.js";
import { estimatePaddingCost, layOutSequences, packedSize } from "./prefix-layout.js";
import { packSharedPrefixes, type MicroBatch } from "./prefix-packing.js";

const sequence = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 10 });
/** Items of one sequence, or of several behind the same beginning. */
const item = fc
  .tuple(sequence, fc.array(sequence, { minLength: 1, maxLength: 3 }))
  .map(([beginning, ends]) => ends.map((end) => [...beginning, ...end]));
const items = fc.array(item, { minLength: 1, maxLength: 20 });

/** So wide that attention hardly costs anything. */
const wide = { hiddenSize: 2 ** 20, heads: 1 };
const narrow = { hiddenSize: 128, heads: 4 };

/** Sequences that share nothing, one per item. */
const rows = (lengths: readonly number[]) =>
  lengths.map((length, i) => [Array.from({ length }, (_, position) => position + 10_000 * i)]);

const sizes = (microBatches: readonly MicroBatch[]) => microBatches.map(({ indices }) => indices.length);

describe("packSharedPrefixes", () => {
  it("packs every item into one micro-batch within the token budget or what the largest item needs alone", () => {
    fc.assert(
      fc.property(
        items,
        fc.integer({ min: 1, max: 60 }),
        fc.constantFrom(wide, narrow, { hiddenSize: 1, heads: 4 }),
        fc.boolean(),
        (given, microBatchTokens, config, sharePrefixes) => {
          const microBatches = packSharedPrefixes(given, { microBatchTokens, config, sharePrefixes });
          const alone = given.map((one) => layOutSequences(one, { hiddenSize: config.hiddenSize, sharePrefixes }));
          const largest = Math.max(...alone.map(({ groups }) => tokensThatFit(packedSize(groups), config)));
          expect(microBatches.flatMap(({ indices }) => indices).sort((a, b) => a - b)).toEqual(given.map((_, i) => i));
          for (const { indices, groups, positions } of microBatches) {
            const found = positions.map(({ group, row }) => [...groups[group].prefix, ...groups[group].rows[row]]);
            const expected = indices.flatMap((i) => given[i]);
            expect(found.map((tokens, i) => tokens.slice(0, expected[i].length))).toEqual(expected);
            expect(tokensThatFit(packedSize(groups), config)).toBeLessThanOrEqual(Math.max(microBatchTokens, largest));
          }
        },
      ),
    );
  });

  it("counts shared tokens once", () => {
    const prompt = Array.from({ length: 100 }, (_, i) => i);
    const turns = [1, 2, 3, 4].map((token) => [[...prompt, token]]);
    expect(packSharedPrefixes(turns, { microBatchTokens: 105, config: wide })).toHaveLength(1);
    expect(packSharedPrefixes(turns, { microBatchTokens: 103, config: wide })).toHaveLength(2);
  });

  it("packs the turns of a conversation that exceeds the token budget into one row", () => {
    const conversation = Array.from({ length: 100 }, (_, i) => i);
    const turns = Array.from({ length: 10 }, (_, i) => [conversation.slice(0, 10 * (i + 1))]);
    const other = rows([50])[0].map((row) => row.map((token) => token + 1000));
    expect(sizes(packSharedPrefixes([...turns, other], { microBatchTokens: 60, config: wide }))).toEqual([10, 1]);
  });

  it("packs fewer long rows than short ones, because attention pairs take memory", () => {
    const options = { microBatchTokens: 8000, config: narrow };
    expect(packSharedPrefixes(rows(Array(80).fill(100)), options)).toHaveLength(2);
    expect(packSharedPrefixes(rows(Array(8).fill(1000)), options)).toHaveLength(8);
  });

  it("separates long rows from many short ones, whose attention would be padded", () => {
    const options = { microBatchTokens: Infinity, config: narrow };
    const lengths = [...Array<number>(25).fill(20), 1000, 900, ...Array<number>(25).fill(20)];
    expect(sizes(packSharedPrefixes(rows(lengths), options)).sort((a, b) => a - b)).toEqual([2, 50]);
    expect(packSharedPrefixes(rows(Array(52).fill(20)), options)).toHaveLength(1);
  });

  it("bounds the padding of rows whose lengths differ evenly", () => {
    const lengths = Array.from({ length: 60 }, (_, i) => 10 + 15 * ((37 * i) % 60));
    const microBatches = packSharedPrefixes(rows(lengths), { microBatchTokens: 1e6, config: narrow });
    const padding = microBatches.map(({ groups }) => estimatePaddingCost(groups, narrow.hiddenSize));
    expect(microBatches.length).toBeGreaterThan(2);
    expect(padding.reduce((sum, cost) => sum + cost, 0)).toBeLessThan(6000);
  });
});
