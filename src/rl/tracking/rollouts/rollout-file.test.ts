import { appendFile, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeChunk, parseRolloutLine, type RolloutRecord } from "./chunk.js";
import { openRolloutTracker } from "./rollout-file.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rollouts-"));
});
afterAll(async () => rm(folder, { recursive: true }));

function makeRecord(step: number, text = ""): RolloutRecord {
  const row = {
    id: `${step}.0`,
    step,
    envSlot: 0,
    group: null,
    return: 1,
    turns: 0,
    tokens: 0,
    end: "terminated",
  } as const;
  return {
    episodes: [
      {
        row: { ...row, startsEpisode: true, seed: null, advantage: null, hasSignal: true },
        turns: [],
        final: { observation: text, render: null },
      },
    ],
    vocabulary: { texts: { 1: "é<\u2028" }, special: [1] },
  };
}

async function readLines(name: string) {
  const text = await readFile(join(folder, name, "rollouts.jsonl"), "utf8");
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => parseRolloutLine(line)!);
}

it("reads episodes as they were recorded", async () => {
  const tracker = await openRolloutTracker(join(folder, "whole"), { maxBytes: 1e6 });
  await tracker.logRollout!(1, makeRecord(1, "x".repeat(100_000)));
  await tracker.close!();
  const [line] = await readLines("whole");
  expect(await decodeChunk(line)).toEqual(makeRecord(1, "x".repeat(100_000)));
  expect(line.data.length).toBeLessThan(1_000);
  const damaged = { ...line, data: `${line.data.slice(0, 40)}Zz9+${line.data.slice(44)}` };
  await expect(decodeChunk(damaged)).rejects.toMatchObject({ code: "FILE_CORRUPT" });
});

it("thins older updates when the file reaches its limit, and keeps the last ones", async () => {
  const maxBytes = 20_000;
  const tracker = await openRolloutTracker(join(folder, "bounded"), { maxBytes });
  for (let step = 1; step <= 300; step++) {
    await tracker.logRollout!(step, makeRecord(step));
    expect((await stat(join(folder, "bounded", "rollouts.jsonl"))).size).toBeLessThanOrEqual(maxBytes);
  }
  await tracker.close!();
  const steps = (await readLines("bounded")).map(({ step }) => step);
  expect(steps.at(-1)).toBe(300);
  expect(steps[0]).toBe(1);
  const largestGap = Math.max(...steps.slice(1).map((step, i) => step - steps[i]));
  expect(largestGap).toBeLessThan(100);
  expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b));
});

it("continues after the step of a checkpoint, without a half-written line", async () => {
  const path = join(folder, "resumed");
  const first = await openRolloutTracker(path, { maxBytes: 1e6 });
  for (const step of [1, 2, 3]) await first.logRollout!(step, makeRecord(step));
  await first.close!();
  await appendFile(join(path, "rollouts.jsonl"), '{"version":1,"step":4,"epis');
  const second = await openRolloutTracker(path, { maxBytes: 1e6, resumeFromStep: 2 });
  await second.logRollout!(3, makeRecord(3));
  await second.close!();
  expect((await readLines("resumed")).map(({ step }) => step)).toEqual([1, 2, 3]);
});

describe("a chunk that unpacks to much more than it has", () => {
  const rows = makeRecord(1, "x").episodes.map(({ row }) => row);
  const pack = (...lines: (string | Buffer)[]) => {
    const parts = lines.flatMap((line) => [Buffer.from(line), Buffer.from("\n")]).slice(0, -1);
    return {
      version: 2,
      step: 1,
      episodes: rows,
      data: gzipSync(Buffer.concat(parts), { level: 1 }).toString("base64"),
    };
  };
  const vocabulary = '{"texts":{},"special":[]}';

  it.each([
    ["of many bytes", pack(vocabulary, Buffer.alloc(33 * 2 ** 20, " ")), "an episode has more than"],
    [
      "of many objects",
      pack(vocabulary, `[${"{},".repeat(1_100_000)}{}]`),
      "more than 1000000 arrays, objects and strings",
    ],
    [
      "of many strings",
      pack(vocabulary, `[${'"",'.repeat(1_100_000)}""]`),
      "more than 1000000 arrays, objects and strings",
    ],
    ["of many lines", pack(vocabulary, "\n".repeat(1_000_000)), "Unexpected end of JSON input"],
    ["whose token texts are the bomb", pack(Buffer.alloc(33 * 2 ** 20, " "), "{}"), "an episode has more than"],
  ])("is refused: %s", async (_, line, reason) => {
    await expect(decodeChunk(line)).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringContaining(reason) as string,
    });
  });

  it("gives the episodes that are wanted without keeping the others", async () => {
    const line = { ...pack(vocabulary, Buffer.alloc(40 * 2 ** 20, "x"), '{"turns":[]}'), episodes: [rows[0], rows[0]] };
    expect((await decodeChunk(line, (index) => index === 1)).episodes).toMatchObject([{ turns: [] }]);
  });
});
