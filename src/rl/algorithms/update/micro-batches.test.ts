import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitIntoMicroBatches } from "./micro-batches.js";
import { tokensThatFit } from "../../../models/weights/micro-batch-memory.js";
import { packedSize } from "../../../models/graphs/prefix-packing.js";

const token = fc.integer({ min: 0, max: 2 });
const turn = fc.record({
  prompt: fc.array(token, { minLength: 1, maxLength: 6 }),
  tokens: fc.array(token, { minLength: 1, maxLength: 4 }),
  allowedTokens: fc.constant(undefined),
});

/** One that is so wide that attention counts for little. */
const wide = { hiddenSize: 2 ** 20, heads: 1 };
const narrow = { hiddenSize: 128, heads: 4 };

const sizes = (lengths: readonly number[], maxTokens: number) => {
  const turns = lengths.map((length, i) => ({
    prompt: Array.from({ length }, (_, place) => place + 1000 * i),
    tokens: [1],
    allowedTokens: undefined,
  }));
  return splitIntoMicroBatches(turns, maxTokens, narrow).map(({ turnIndices }) => turnIndices.length);
};

describe("budgetBatches", () => {
  it("puts every turn into one batch, none of them larger than allowed unless it is one turn", () => {
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 30 }),
        fc.constantFrom(wide, narrow, { hiddenSize: 4, heads: 4 }),
        (turns, maxTokens, config) => {
          const batches = splitIntoMicroBatches(turns, maxTokens, config);
          expect(batches.flatMap(({ turnIndices }) => turnIndices).sort((a, b) => a - b)).toEqual(
            turns.map((_, i) => i),
          );
          for (const { turnIndices, packed } of batches) {
            const size = tokensThatFit(packedSize(packed.groups), config);
            expect(turnIndices.length === 1 || size <= maxTokens).toBe(true);
          }
        },
      ),
    );
  });

  it("counts what turns have in common once", () => {
    const prompt = Array.from({ length: 100 }, (_, i) => i);
    const turns = [1, 2, 3, 4].map((reply) => ({ prompt, tokens: [reply, 0], allowedTokens: undefined }));
    expect(splitIntoMicroBatches(turns, 105, wide)).toHaveLength(1);
    expect(splitIntoMicroBatches(turns, 103, wide)).toHaveLength(2);
  });

  it("counts the pairs of attention, so that many long rows do not go together", () => {
    const tokens = 8000;
    expect(sizes(Array(80).fill(100), tokens).length).toBe(2);
    expect(sizes(Array(8).fill(1000), tokens).length).toBe(8);
  });
});
