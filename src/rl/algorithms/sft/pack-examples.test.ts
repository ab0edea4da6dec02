import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TokenBatch } from "../../../models/graphs/token-batch.js";
import { countLossTokens, type TokenExample } from "../../data/sft-example.js";
import { packExamples } from "./sft-learner.js";

const config = { hiddenSize: 128, heads: 4 };

/** The tokens before each loss token, and the loss token. */
function selections({ groups, selected }: TokenBatch): string[] {
  return selected.map(({ group, row, index, target }) => {
    const { prefix, rows } = groups[group];
    return [...prefix, ...rows[row]]
      .slice(0, prefix.length + index)
      .concat(target!)
      .join();
  });
}

const examples = fc
  .array(
    fc.record({
      // Few distinct tokens and prompts, so that many are shared.
      prompt: fc.constantFrom(0, 1, 2, 3),
      rest: fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 1 })), {
        minLength: 1,
        maxLength: 12,
      }),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((records) =>
    records.map(({ prompt, rest }): TokenExample => {
      const promptTokens = Array.from({ length: 10 * prompt }, (_, i) => (i * prompt) % 5);
      return {
        tokens: [...promptTokens, ...rest.map(([token]) => token)],
        lossMask: [...promptTokens.map(() => 0), ...rest.map(([, bit]) => bit)],
      };
    }),
  );

describe("packExamples", () => {
  it.each([true, false])(
    "selects every loss token behind the tokens that precede it (sharePrefixes: %s)",
    (sharePrefixes) => {
      fc.assert(
        fc.property(examples, fc.integer({ min: 10, max: 300 }), (given, microBatchTokens) => {
          const microBatches = packExamples(given, { microBatchTokens, sharePrefixes, config });
          // The first token has no prediction.
          const expected = given.flatMap(({ tokens, lossMask }) =>
            tokens.flatMap((_, t) => (t > 0 && lossMask[t] !== 0 ? [tokens.slice(0, t + 1).join()] : [])),
          );
          expect(microBatches.flatMap(selections).sort()).toEqual(expected.sort());
          expect(microBatches.flatMap(({ selected }) => selected)).toHaveLength(
            given.reduce((sum, example) => sum + countLossTokens(example), 0),
          );
          const hasPrefix = microBatches.some(({ groups }) => groups.some(({ prefix }) => prefix.length > 0));
          expect(hasPrefix && !sharePrefixes).toBe(false);
        }),
      );
    },
  );

  it("computes a prompt with several completions once, and no token behind the last loss token's predictor", () => {
    const prompt = Array.from({ length: 30 }, (_, i) => i);
    const given = [50, 51, 52, 53].map((token) => ({
      tokens: [...prompt, token, 60, 61],
      lossMask: [...prompt.map(() => 0), 1, 1, 0],
    }));
    const [{ groups }] = packExamples(given, { microBatchTokens: 1000, config });
    expect(groups).toEqual([{ prefix: prompt, rows: [[53], [52], [51], [50]] }]);
  });
});
