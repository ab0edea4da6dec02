import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CausalLM } from "../../models/causal-lm.js";
import { RunningSequence } from "./running-sequence.js";
import { cacheShape, copyCacheRows, KvCache, type CacheCopy } from "../cache/kv-cache.js";
import { KvCacheRows, type CacheRow } from "./kv-cache-rows.js";

let model: CausalLM;
beforeAll(async () => {
  const folder = fileURLToPath(new URL("../../../test/fixtures/models/llama", import.meta.url));
  model = await CausalLM.open(folder, { device: "cpu", threads: 1 });
});
afterAll(() => model.close());

function sequenceFor(prompt: readonly number[]): RunningSequence {
  const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
  const request = { prompt, sampling, maxNewTokens: 1, random: () => 0, stopTokens: new Set<number>() };
  return RunningSequence.forSampling(request);
}

const rowOf = (rows: KvCacheRows, sequence: RunningSequence): CacheRow =>
  rows.rows.find((row) => row.sequence === sequence)!;

/**
 * Simulates a step: processes the unprocessed tokens and writes `mark` as the first key of the row.
 */
async function process(rows: KvCacheRows, sequence: RunningSequence, mark: number): Promise<void> {
  const row = rowOf(rows, sequence);
  row.tokens.push(...sequence.unprocessedTokens);
  sequence.unprocessedTokens = [];
  await model.runtime.write({ ...firstKey(rows, row), shape: [1] }, Float32Array.of(mark));
}

function firstKey(rows: KvCacheRows, row: CacheRow) {
  const view = rows.cache!.layerView(0, "key");
  return { ...view, offset: view.offset + rows.rows.indexOf(row) * rows.cache!.capacity * model.config.headDim };
}

async function markOf(rows: KvCacheRows, sequence: RunningSequence): Promise<number> {
  const { data } = await model.runtime.read({ ...firstKey(rows, rowOf(rows, sequence)), shape: [1] });
  return (data as Float32Array)[0];
}

const prompt = (start: number, length: number) => Array.from({ length }, (_, i) => (start + i) % 24);

it("stashes idle rows and restores them for prompts that continue them", async () => {
  const rows = new KvCacheRows(model);
  const sequences = [0, 1, 2, 3].map((i) => sequenceFor(prompt(5 * i, 10 + i)));
  await rows.admit(sequences, 0);
  for (const [i, sequence] of sequences.entries()) await process(rows, sequence, i + 1);
  for (const sequence of sequences.slice(1)) rows.release(rowOf(rows, sequence));
  for (let step = 0; step < 7; step++) await rows.compactWhenIdle();
  expect(rows.cache!.rows).toBe(4);
  await rows.compactWhenIdle();
  expect(rows.cache!.rows).toBe(1);
  expect(await markOf(rows, sequences[0])).toBe(1);

  const next = [3, 1, 2].map((i) => sequenceFor([...sequences[i].prompt, 7, 8]));
  const other = sequenceFor([23, 22, 21]);
  await rows.admit([other, ...next], 0);
  expect(next.map(({ unprocessedTokens }) => unprocessedTokens)).toEqual([
    [7, 8],
    [7, 8],
    [7, 8],
  ]);
  expect(other.unprocessedTokens).toEqual([23, 22, 21]);
  expect(await Promise.all(next.map((sequence) => markOf(rows, sequence)))).toEqual([4, 2, 3]);
  expect(await markOf(rows, sequences[0])).toBe(1);
  rows.clear();
});

it("assigns a cached row to the prompt that continues most of it, in any order", async () => {
  const rows = new KvCacheRows(model);
  const [first, second] = [sequenceFor(prompt(0, 12)), sequenceFor(prompt(0, 20))];
  await rows.admit([first, second], 0);
  await process(rows, first, 1);
  await process(rows, second, 2);
  for (const sequence of [first, second]) rows.release(rowOf(rows, sequence));
  const [short, long] = [sequenceFor([...prompt(0, 12), 3]), sequenceFor([...prompt(0, 20), 3])];
  await rows.admit([short, long], 0);
  expect([short.unprocessedTokens, long.unprocessedTokens]).toEqual([[3], [3]]);
  expect([await markOf(rows, short), await markOf(rows, long)]).toEqual([1, 2]);
  rows.clear();
});

it("keeps the shared beginning of a row that another prompt overwrites", async () => {
  const rows = new KvCacheRows(model);
  const [first, second] = [sequenceFor(prompt(0, 20)), sequenceFor(prompt(9, 20))];
  await rows.admit([first, second], 0);
  await process(rows, first, 1);
  await process(rows, second, 2);
  for (const sequence of [first, second]) rows.release(rowOf(rows, sequence));
  // A single prompt takes the row that has been idle longest, even if it has more tokens in common
  // with another.
  const alone = sequenceFor([9, ...prompt(3, 9)]);
  await rows.admit([alone], 0);
  expect(alone.unprocessedTokens).toHaveLength(10);
  await process(rows, alone, 3);
  rows.release(rowOf(rows, alone));
  const next = [sequenceFor([...prompt(9, 7), 3]), sequenceFor([9, ...prompt(3, 3), 4])];
  await rows.admit(next, 0);
  expect(next.map(({ unprocessedTokens }) => unprocessedTokens)).toEqual([[3], [4]]);
  expect(await Promise.all(next.map((sequence) => markOf(rows, sequence)))).toEqual([2, 3]);
  rows.clear();
});

it("does not grow many rows to the length of an idle one", async () => {
  const rows = new KvCacheRows(model);
  const long = sequenceFor(prompt(0, 600));
  await rows.admit([long], 0);
  await process(rows, long, 9);
  rows.release(rowOf(rows, long));
  const many = Array.from({ length: 20 }, (_, i) => sequenceFor(prompt(i, 10)));
  await rows.admit(many, 0);
  expect(rows.cache!.capacity).toBe(32);
  for (const sequence of many) rows.release(rowOf(rows, sequence));
  const next = sequenceFor([...prompt(0, 600), 1]);
  await rows.admit([next], 0);
  expect(next.unprocessedTokens).toEqual([1]);
  expect(await markOf(rows, next)).toBe(9);
  rows.clear();
});

it("invalidates tokens cached after another prefix", async () => {
  const rows = new KvCacheRows(model);
  const sequence = sequenceFor(prompt(0, 10));
  await rows.admit([sequence], 0);
  await process(rows, sequence, 1);
  rows.release(rowOf(rows, sequence));
  rows.invalidate();
  const next = sequenceFor([...prompt(0, 10), 1]);
  await rows.admit([next], 0);
  expect(next.unprocessedTokens).toHaveLength(11);
  rows.clear();
});

it("restores no more of a stashed row than a prompt shares with it, which is all that shorter rows have room for", async () => {
  const rows = new KvCacheRows(model);
  const many = Array.from({ length: 16 }, (_, i) => sequenceFor([...prompt(i, 20), ...prompt(3 * i, 20)]));
  await rows.admit(many, 0);
  for (const [i, sequence] of many.entries()) await process(rows, sequence, i + 1);
  for (const sequence of many) rows.release(rowOf(rows, sequence));
  const [short, running] = [sequenceFor([7, 7, 7]), sequenceFor([8, 8, 8])];
  await rows.admit([short, running], 0);
  await process(rows, short, 100);
  await process(rows, running, 200);
  for (let step = 0; step < 9; step++) await rows.compactWhenIdle();
  expect([rows.cache!.rows, rows.cache!.capacity]).toEqual([2, 32]);
  rows.release(rowOf(rows, short));

  const part = sequenceFor(many[5].prompt.slice(0, 25));
  await rows.admit([part], 0);
  expect(part.unprocessedTokens).toHaveLength(1);
  expect(await markOf(rows, part)).toBe(6);
  expect(await markOf(rows, running)).toBe(200);
  rows.clear();
});

it("writes only to tokens of the row", () => {
  const cache = new KvCache(model.runtime, cacheShape(model.config), 2, 32);
  const copy = (...copies: CacheCopy[]) => copyCacheRows(cacheShape(model.config), cache, cache, copies);
  const outside = { code: "INVALID_STATE", message: expect.stringContaining("2 rows of 32 tokens") as string };
  expect(copy({ fromRow: 0, toRow: 1, tokenCount: 32 })).toMatchObject({
    kind: "kernel",
    call: { name: "copyBlocks" },
  });
  expect(() => copy({ fromRow: 0, toRow: 0, toToken: 1, tokenCount: 32 })).toThrow(expect.objectContaining(outside));
  expect(() => copy({ fromRow: 2, toRow: 0, tokenCount: 1 })).toThrow(expect.objectContaining(outside));
  cache.free();
});
