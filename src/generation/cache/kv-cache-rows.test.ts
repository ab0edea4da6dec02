import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CausalLM } from "../../models/causal-lm.js";
import { RunningSequence } from "../sampling/running-sequence.js";
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

/** Does what a step does: the row has read what was pending, and its first key is `mark`. */
async function read(rows: KvCacheRows, job: RunningSequence, mark: number): Promise<void> {
  const slot = rowOf(rows, job);
  slot.tokens.push(...job.unprocessedTokens);
  job.unprocessedTokens = [];
  await model.runtime.write({ ...firstKey(rows, slot), shape: [1] }, Float32Array.of(mark));
}

function firstKey(rows: KvCacheRows, slot: CacheRow) {
  const view = rows.cache!.layerView(0, "key");
  return { ...view, offset: view.offset + rows.rows.indexOf(slot) * rows.cache!.capacity * model.config.headDim };
}

async function markOf(rows: KvCacheRows, job: RunningSequence): Promise<number> {
  const { data } = await model.runtime.read({ ...firstKey(rows, rowOf(rows, job)), shape: [1] });
  return (data as Float32Array)[0];
}

const prompt = (start: number, length: number) => Array.from({ length }, (_, i) => (start + i) % 24);

it("keeps what idle rows have read when they leave the cache, and gives it to prompts that go on with it", async () => {
  const rows = new KvCacheRows(model);
  const jobs = [0, 1, 2, 3].map((i) => sequenceFor(prompt(5 * i, 10 + i)));
  await rows.admit(jobs, 0);
  for (const [i, job] of jobs.entries()) await read(rows, job, i + 1);
  for (const job of jobs.slice(1)) rows.release(rowOf(rows, job));
  for (let step = 0; step < 7; step++) await rows.compactWhenIdle();
  expect(rows.cache!.rows).toBe(4);
  await rows.compactWhenIdle();
  expect(rows.cache!.rows).toBe(1);
  expect(await markOf(rows, jobs[0])).toBe(1);

  const next = [3, 1, 2].map((i) => sequenceFor([...jobs[i].prompt, 7, 8]));
  const other = sequenceFor([23, 22, 21]);
  await rows.admit([other, ...next], 0);
  expect(next.map(({ unprocessedTokens }) => unprocessedTokens)).toEqual([
    [7, 8],
    [7, 8],
    [7, 8],
  ]);
  expect(other.unprocessedTokens).toEqual([23, 22, 21]);
  expect(await Promise.all(next.map((job) => markOf(rows, job)))).toEqual([4, 2, 3]);
  expect(await markOf(rows, jobs[0])).toBe(1);
  rows.clear();
});

it("gives a kept row to the prompt that goes on with most of it, in whatever order they come", async () => {
  const rows = new KvCacheRows(model);
  const [first, second] = [sequenceFor(prompt(0, 12)), sequenceFor(prompt(0, 20))];
  await rows.admit([first, second], 0);
  await read(rows, first, 1);
  await read(rows, second, 2);
  for (const job of [first, second]) rows.release(rowOf(rows, job));
  const [short, long] = [sequenceFor([...prompt(0, 12), 3]), sequenceFor([...prompt(0, 20), 3])];
  await rows.admit([short, long], 0);
  expect([short.unprocessedTokens, long.unprocessedTokens]).toEqual([[3], [3]]);
  expect([await markOf(rows, short), await markOf(rows, long)]).toEqual([1, 2]);
  rows.clear();
});

it("does not make many rows long for an idle one that is", async () => {
  const rows = new KvCacheRows(model);
  const long = sequenceFor(prompt(0, 600));
  await rows.admit([long], 0);
  await read(rows, long, 9);
  rows.release(rowOf(rows, long));
  const many = Array.from({ length: 20 }, (_, i) => sequenceFor(prompt(i, 10)));
  await rows.admit(many, 0);
  expect(rows.cache!.capacity).toBe(32);
  for (const job of many) rows.release(rowOf(rows, job));
  const next = sequenceFor([...prompt(0, 600), 1]);
  await rows.admit([next], 0);
  expect(next.unprocessedTokens).toEqual([1]);
  expect(await markOf(rows, next)).toBe(9);
  rows.clear();
});

it("forgets what was read behind another prefix", async () => {
  const rows = new KvCacheRows(model);
  const job = sequenceFor(prompt(0, 10));
  await rows.admit([job], 0);
  await read(rows, job, 1);
  rows.release(rowOf(rows, job));
  rows.invalidate();
  const next = sequenceFor([...prompt(0, 10), 1]);
  await rows.admit([next], 0);
  expect(next.unprocessedTokens).toHaveLength(11);
  rows.clear();
});
