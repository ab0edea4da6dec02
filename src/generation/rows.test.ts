import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CausalLM } from "../models/causal-lm.js";
import type { Job } from "./job.js";
import { Rows, type Slot } from "./rows.js";

let model: CausalLM;
beforeAll(async () => {
  const folder = fileURLToPath(new URL("../../test/fixtures/models/llama", import.meta.url));
  model = await CausalLM.open(folder, { device: "cpu", threads: 1 });
});
afterAll(() => model.close());

function jobFor(prompt: readonly number[]): Job {
  const nothing = () => {};
  const lists = { pending: [], targets: [], tokens: [], logProbs: [], plainLogProbs: [], values: [] };
  const request = { prompt, maxNewTokens: 1, random: () => 0, stopTokens: new Set<number>() };
  const settings = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
  return { prompt, reply: { ...request, settings }, ...lists, settle: nothing, reject: nothing };
}

const slotOf = (rows: Rows, job: Job): Slot => rows.slots.find((slot) => slot.job === job)!;

/** Does what a step does: the row has read what was pending, and its first key is `mark`. */
async function read(rows: Rows, job: Job, mark: number): Promise<void> {
  const slot = slotOf(rows, job);
  slot.tokens.push(...job.pending);
  job.pending = [];
  await model.runtime.write({ ...firstKey(rows, slot), shape: [1] }, Float32Array.of(mark));
}

function firstKey(rows: Rows, slot: Slot) {
  const view = rows.cache!.view(0, "key");
  return { ...view, offset: view.offset + rows.slots.indexOf(slot) * rows.cache!.capacity * model.config.headDim };
}

async function markOf(rows: Rows, job: Job): Promise<number> {
  const { data } = await model.runtime.read({ ...firstKey(rows, slotOf(rows, job)), shape: [1] });
  return (data as Float32Array)[0];
}

const prompt = (start: number, length: number) => Array.from({ length }, (_, i) => (start + i) % 24);

it("keeps what idle rows have read when they leave the cache, and gives it to prompts that go on with it", async () => {
  const rows = new Rows(model);
  const jobs = [0, 1, 2, 3].map((i) => jobFor(prompt(5 * i, 10 + i)));
  await rows.join(jobs, 0);
  for (const [i, job] of jobs.entries()) await read(rows, job, i + 1);
  for (const job of jobs.slice(1)) rows.leave(slotOf(rows, job));
  for (let step = 0; step < 7; step++) await rows.shrinkWhenIdle();
  expect(rows.cache!.rows).toBe(4);
  await rows.shrinkWhenIdle();
  expect(rows.cache!.rows).toBe(1);
  expect(await markOf(rows, jobs[0])).toBe(1);

  const next = [3, 1, 2].map((i) => jobFor([...jobs[i].prompt, 7, 8]));
  const other = jobFor([23, 22, 21]);
  await rows.join([other, ...next], 0);
  expect(next.map(({ pending }) => pending)).toEqual([
    [7, 8],
    [7, 8],
    [7, 8],
  ]);
  expect(other.pending).toEqual([23, 22, 21]);
  expect(await Promise.all(next.map((job) => markOf(rows, job)))).toEqual([4, 2, 3]);
  expect(await markOf(rows, jobs[0])).toBe(1);
  rows.clear();
});

it("gives a kept row to the prompt that goes on with most of it, in whatever order they come", async () => {
  const rows = new Rows(model);
  const [first, second] = [jobFor(prompt(0, 12)), jobFor(prompt(0, 20))];
  await rows.join([first, second], 0);
  await read(rows, first, 1);
  await read(rows, second, 2);
  for (const job of [first, second]) rows.leave(slotOf(rows, job));
  const [short, long] = [jobFor([...prompt(0, 12), 3]), jobFor([...prompt(0, 20), 3])];
  await rows.join([short, long], 0);
  expect([short.pending, long.pending]).toEqual([[3], [3]]);
  expect([await markOf(rows, short), await markOf(rows, long)]).toEqual([1, 2]);
  rows.clear();
});

it("does not make many rows long for an idle one that is", async () => {
  const rows = new Rows(model);
  const long = jobFor(prompt(0, 600));
  await rows.join([long], 0);
  await read(rows, long, 9);
  rows.leave(slotOf(rows, long));
  const many = Array.from({ length: 20 }, (_, i) => jobFor(prompt(i, 10)));
  await rows.join(many, 0);
  expect(rows.cache!.capacity).toBe(32);
  for (const job of many) rows.leave(slotOf(rows, job));
  const next = jobFor([...prompt(0, 600), 1]);
  await rows.join([next], 0);
  expect(next.pending).toEqual([1]);
  expect(await markOf(rows, next)).toBe(9);
  rows.clear();
});

it("forgets what was read behind another prefix", async () => {
  const rows = new Rows(model);
  const job = jobFor(prompt(0, 10));
  await rows.join([job], 0);
  await read(rows, job, 1);
  rows.leave(slotOf(rows, job));
  rows.forgetTokens();
  const next = jobFor([...prompt(0, 10), 1]);
  await rows.join([next], 0);
  expect(next.pending).toHaveLength(11);
  rows.clear();
});
