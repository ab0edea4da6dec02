import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budgetBatches } from "./batches.js";
import { memoryInTokens } from "../../models/pass-memory.js";
import { extent } from "./rows.js";

const token = fc.integer({ min: 0, max: 2 });
const turn = fc.record({
  prompt: fc.array(token, { minLength: 1, maxLength: 6 }),
  tokens: fc.array(token, { minLength: 1, maxLength: 4 }),
  allowed: fc.constant(undefined),
});

/** One that is so wide that attention counts for little. */
const wide = { hiddenSize: 2 ** 20, heads: 1 };
const narrow = { hiddenSize: 128, heads: 4 };

const sizes = (lengths: readonly number[], maxTokens: number) => {
  const turns = lengths.map((length, i) => ({
    prompt: Array.from({ length }, (_, place) => place + 1000 * i),
    tokens: [1],
    allowed: undefined,
  }));
  return budgetBatches(turns, maxTokens, narrow).map(({ numbers }) => numbers.length);
};

describe("budgetBatches", () => {
  it("puts every turn into one batch, none of them larger than allowed unless it is one turn", () => {
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 30 }),
        fc.constantFrom(wide, narrow, { hiddenSize: 4, heads: 4 }),
        (turns, maxTokens, config) => {
          const batches = budgetBatches(turns, maxTokens, config);
          expect(batches.flatMap(({ numbers }) => numbers).sort((a, b) => a - b)).toEqual(turns.map((_, i) => i));
          for (const { numbers, laid } of batches) {
            const size = memoryInTokens(extent(laid.groups), config);
            expect(numbers.length === 1 || size <= maxTokens).toBe(true);
          }
        },
      ),
    );
  });

  it("counts what turns have in common once", () => {
    const prompt = Array.from({ length: 100 }, (_, i) => i);
    const turns = [1, 2, 3, 4].map((reply) => ({ prompt, tokens: [reply, 0], allowed: undefined }));
    expect(budgetBatches(turns, 105, wide)).toHaveLength(1);
    expect(budgetBatches(turns, 103, wide)).toHaveLength(2);
  });

  it("counts the pairs of attention, so that many long rows do not go together", () => {
    const tokens = 8000;
    expect(sizes(Array(80).fill(100), tokens).length).toBe(2);
    expect(sizes(Array(8).fill(1000), tokens).length).toBe(8);
  });
});
