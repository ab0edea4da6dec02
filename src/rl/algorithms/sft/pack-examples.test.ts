import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countLossTokens, type TokenExample } from "../../data/sft-example.js";
import { packExamples, type MicroBatch } from "./pack-examples.js";

/** The whole sequences of a pass, with 1 for the tokens that are selected. */
function unpacked({ groups, selected }: MicroBatch): { tokens: readonly number[]; learnt: readonly number[] }[] {
  return groups.flatMap(({ prefix, rows }, group) =>
    rows.map((own, row) => {
      const tokens = [...prefix, ...own];
      const places = selected.filter((token) => token.group === group && token.row === row);
      const learnt = tokens.map((_, i) => (places.some(({ index }) => index + prefix.length === i) ? 1 : 0));
      return { tokens, learnt };
    }),
  );
}

const examples = fc
  .array(
    fc.record({
      // Few different tokens and beginnings, so that many are shared.
      beginning: fc.constantFrom(0, 1, 2, 3),
      own: fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 1 })), {
        minLength: 1,
        maxLength: 12,
      }),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((records) =>
    records.map(({ beginning, own }): TokenExample => {
      const shared = Array.from({ length: 10 * beginning }, (_, i) => (i * beginning) % 5);
      const learnt = own.map(([, bit], i) => (i === own.length - 1 ? 1 : bit));
      return { tokens: [...shared, ...own.map(([token]) => token)], lossMask: [...shared.map(() => 0), ...learnt] };
    }),
  );

/** So wide that attention counts for little. */
const wide = { hiddenSize: 2 ** 20, heads: 1 };

const key = (value: unknown) => JSON.stringify(value);

describe("packExamples", () => {
  it.each([true, false])("puts every example into one pass, whole, with its learnt tokens (shared: %s)", (share) => {
    fc.assert(
      fc.property(examples, fc.integer({ min: 10, max: 300 }), (given, maxTokens) => {
        const passes = packExamples(given, { maxTokens, sharePrefixes: share, network: wide });
        // Nothing predicts a first token.
        const wanted = given.map(({ tokens, lossMask }) => ({
          tokens,
          learnt: tokens.map((_, i) => (i > 0 ? lossMask[i] : 0)),
        }));
        expect(passes.flatMap(unpacked).map(key).sort()).toEqual(wanted.map(key).sort());
        expect(passes.flatMap(({ selected }) => selected)).toHaveLength(
          given.reduce((sum, example) => sum + countLossTokens(example), 0),
        );
        for (const { groups, withPrefix } of passes) {
          expect(groups.some(({ prefix }) => prefix.length > 0)).toBe(withPrefix);
          const flat = groups.reduce((sum, { prefix, rows }) => sum + prefix.length + rows.flat().length, 0);
          expect(flat <= maxTokens || groups.length === 1).toBe(true);
        }
      }),
    );
  });

  it("computes a prompt with several completions once", () => {
    const prompt = Array.from({ length: 30 }, (_, i) => i);
    const given = [50, 51, 52, 53].map((token) => ({
      tokens: [...prompt, token, 60],
      lossMask: [...prompt.map(() => 0), 1, 1],
    }));
    const [{ groups, withPrefix }] = packExamples(given, { maxTokens: 1000, sharePrefixes: true, network: wide });
    expect(withPrefix).toBe(true);
    expect(groups).toEqual([{ prefix: prompt, rows: [50, 51, 52, 53].map((token) => [token, 60]) }]);
  });

  it("keeps long rows and many short ones apart", () => {
    const row = (length: number) => ({ tokens: Array.from({ length }, (_, i) => i % 7), lossMask: [0, 1] });
    const given = [row(1000), row(900), ...Array.from({ length: 50 }, () => row(20))];
    const passes = packExamples(given, { maxTokens: 10_000, sharePrefixes: false, network: wide });
    expect(passes.map(({ groups }) => groups.length)).toEqual([2, 50]);
  });

  it("counts the pairs of attention, so that many long rows do not go together", () => {
    const given = Array.from({ length: 8 }, (_, i) => ({ tokens: Array<number>(1000).fill(i), lossMask: [0, 1] }));
    const options = { maxTokens: 11_000, sharePrefixes: false, network: { hiddenSize: 128, heads: 4 } };
    expect(packExamples(given, options).map(({ groups }) => groups.length)).toEqual([2, 2, 2, 2]);
  });
});
