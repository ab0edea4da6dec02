import { describe, expect, it } from "vitest";
import type { CacheRow } from "./kv-cache-rows.js";
import type { NewTokens } from "../../models/graphs/frozen-states.js";
import { RunningSequence } from "./running-sequence.js";
import { planStep, promptKey, type ActiveRow } from "./step-plan.js";

const range = (length: number, start = 0) => Array.from({ length }, (_, i) => start + i);

/** A row with cached tokens whose sequence has further ones. */
function activeRow(
  rowIndex: number,
  cached: readonly number[],
  unprocessed: readonly number[],
  options: Partial<CacheRow> = {},
): ActiveRow {
  const sequence = RunningSequence.forSampling({
    prompt: [...cached, ...unprocessed],
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: 4,
    random: () => 0,
    stopTokens: new Set(),
  });
  sequence.unprocessedTokens = [...unprocessed];
  const row = { tokens: [...cached], regime: 0, lacksFrozenLayers: false, sequence, lastUsed: 0, ...options };
  return { row, rowIndex, sequence };
}

/** States of all sequences whose tokens are below a limit. */
const statesBelow = (limit: number) => ({
  find: ({ cached, tokens }: NewTokens) =>
    [...cached, ...tokens].every((token) => token < limit) ? [...tokens] : undefined,
});

const plan = (rows: readonly ActiveRow[], limit?: number) =>
  planStep(rows, {
    config: { ropes: [] },
    prefix: [],
    frozenStates: limit === undefined ? undefined : statesBelow(limit),
  });
const indices = (rows: readonly { readonly rowIndex: number }[]) => rows.map(({ rowIndex }) => rowIndex);

describe("planStep", () => {
  it("changes neither rows nor sequences, and gives the same plan again", () => {
    const rows = [
      activeRow(0, range(9), [9], { lacksFrozenLayers: true }),
      activeRow(1, range(9, 50), [70], { lacksFrozenLayers: true }),
      activeRow(2, [], range(600)),
      activeRow(3, [1], [2], { regime: 1 }),
    ];
    const before = structuredClone(
      rows.map(({ row, sequence }) => [row.tokens, row.regime, sequence.unprocessedTokens]),
    );
    const first = plan(rows, 40);
    expect(plan(rows, 40)).toEqual(first);
    expect(rows.map(({ row, sequence }) => [row.tokens, row.regime, sequence.unprocessedTokens])).toEqual(before);
    expect(rows.map(({ row }) => row.lacksFrozenLayers)).toEqual([true, true, false, false]);
  });

  it("advances all rows by one step when none has a long prompt", () => {
    const { fromStates, fromTokens } = plan([activeRow(0, [1, 2], [3]), activeRow(1, [4], [5, 6])], 100);
    expect(fromStates).toEqual([]);
    expect(fromTokens.map(({ cached, chunk }) => [cached, chunk])).toEqual([
      [[1, 2], [3]],
      [[4], [5, 6]],
    ]);
  });

  it("starts prompts and rows without frozen layers from states, and other rows from tokens", () => {
    const rows = [
      activeRow(0, [], [1, 2]),
      activeRow(1, [], [1, 50]),
      activeRow(2, [3], [4], { lacksFrozenLayers: true }),
      activeRow(3, [3], [4]),
    ];
    const { fromStates, fromTokens } = plan(rows, 40);
    expect([indices(fromStates), indices(fromTokens)]).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(fromStates.map(({ frozenSlots }) => frozenSlots)).toEqual([[1, 2], [4]]);
  });

  it("computes all tokens of a row again whose states were discarded, or whose rotary frequencies changed", () => {
    const withoutStates = [activeRow(0, range(3), [3], { lacksFrozenLayers: true })];
    for (const limit of [undefined, 2])
      expect(plan(withoutStates, limit).fromTokens).toMatchObject([
        { cached: [], unprocessed: range(4), chunk: range(4) },
      ]);
    const [changed] = plan([activeRow(0, range(3), [3], { regime: 7 })]).fromTokens;
    expect(changed).toMatchObject({ cached: [], chunk: range(4), regime: 0 });
  });

  it("prefills long prompts before other rows, in chunks of 512 tokens", () => {
    const { fromTokens } = plan([activeRow(0, [1], [2]), activeRow(1, [], range(600)), activeRow(2, [], range(20))]);
    expect(indices(fromTokens)).toEqual([1]);
    expect([fromTokens[0].chunk.length, fromTokens[0].unprocessed.length]).toEqual([512, 600]);
    const short = [activeRow(0, [], range(300)), activeRow(1, [], range(250, 300)), activeRow(2, [], range(300))];
    expect(indices(plan(short).fromTokens)).toEqual([0, 2]);
  });

  it("computes a prompt once for all of its continuations that are scored, and then the rest of each", () => {
    const prompt = range(20);
    const rows = [[90], [91, 92], [91, 93, 94]].map((continuation, rowIndex): ActiveRow => {
      const sequence = RunningSequence.forScoring(prompt, continuation, 0, true);
      sequence.unprocessedTokens = [...sequence.tokensToPrefill];
      return { row: { tokens: [], regime: 0, lacksFrozenLayers: false, sequence, lastUsed: 0 }, rowIndex, sequence };
    });
    const { fromTokens } = plan(rows);
    expect(fromTokens.map(({ chunk }) => chunk)).toEqual([prompt, prompt, prompt]);
    expect(new Set(fromTokens.map(promptKey)).size).toBe(1);
    for (const { row, sequence } of rows) {
      row.tokens = [...prompt];
      sequence.unprocessedTokens = sequence.unprocessedTokens.slice(prompt.length);
    }
    expect(plan(rows.slice(1)).fromTokens.map(({ chunk }) => chunk)).toEqual([[91], [91, 93]]);
  });

  it("computes a continuation with its prompt where it is long or the rest of the prompt is short", () => {
    const planScored = (prompt: readonly number[], length: number, cached = 0) => {
      const sequence = RunningSequence.forScoring(prompt, range(length, 60), 0, true);
      sequence.unprocessedTokens = sequence.tokensToPrefill.slice(cached);
      const row = { tokens: prompt.slice(0, cached), regime: 0, lacksFrozenLayers: false, sequence, lastUsed: 0 };
      return plan([{ row, rowIndex: 0, sequence }]).fromTokens[0].chunk.length;
    };
    expect([planScored(range(20), 9), planScored(range(20), 10)]).toEqual([20, 29]);
    expect([planScored(range(20), 4, 11), planScored(range(20), 4, 12)]).toEqual([9, 11]);
  });
});
