import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budgetBatches } from "./batches.js";
import { commonLength, compare } from "./rows.js";

const token = fc.integer({ min: 0, max: 2 });
const turn = fc.record({
  prompt: fc.array(token, { minLength: 1, maxLength: 6 }),
  tokens: fc.array(token, { minLength: 1, maxLength: 4 }),
  allowed: fc.constant(undefined),
});

/** Tokens of a batch when what neighbours have in common is computed once. */
function tokensOf(sequences: readonly (readonly number[])[]): number {
  const sorted = [...sequences].sort(compare);
  return sorted.reduce(
    (sum, sequence, i) => sum + sequence.length - (i === 0 ? 0 : commonLength(sorted[i - 1], sequence)),
    0,
  );
}

describe("budgetBatches", () => {
  it("puts every turn into one batch, and no more tokens than allowed unless one turn has more", () => {
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 30 }),
        (turns, maxTokens) => {
          const batches = budgetBatches(turns, maxTokens);
          expect(batches.flat().sort((a, b) => a - b)).toEqual(turns.map((_, i) => i));
          for (const batch of batches) {
            const sequences = batch.map((i) => [...turns[i].prompt, ...turns[i].tokens]);
            expect(batch.length === 1 || tokensOf(sequences) <= maxTokens).toBe(true);
          }
        },
      ),
    );
  });

  it("counts what turns have in common once", () => {
    const prompt = Array.from({ length: 100 }, (_, i) => i);
    const turns = [1, 2, 3, 4].map((reply) => ({ prompt, tokens: [reply], allowed: undefined }));
    expect(budgetBatches(turns, 104)).toHaveLength(1);
    expect(budgetBatches(turns, 103)).toHaveLength(2);
  });
});
