import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RunsFolder } from "./run-files.js";
import { RunRows } from "./run-rows.js";

let root: string;
let rows: RunRows;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rows-"));
  for (const name of ["a", "b"]) {
    await mkdir(join(root, name));
    await writeFile(join(root, name, "config.json"), JSON.stringify({ version: 2, env: "Blackjack-v1" }));
    await writeFile(join(root, name, "metrics.jsonl"), '{"step":1}\n');
    await writeFile(
      join(root, name, "log.jsonl"),
      '{"time":1,"step":0,"kind":"end","message":"","outcome":"finished"}\n',
    );
  }
  rows = new RunRows(await RunsFolder.open(root));
});
afterAll(async () => rm(root, { recursive: true }));

it("reads the folder once for requests that arrive together", async () => {
  const [first, second] = await Promise.all([rows.list(), rows.list()]);
  expect(second).toBe(first);
  expect(first.rows.map(({ id, updates }) => [id, updates])).toEqual([
    ["a", 1],
    ["b", 1],
  ]);
});

it("reads a run again when one of its files has changed, appeared or gone", async () => {
  const [before, other] = (await rows.list()).rows;
  await appendFile(join(root, "a", "metrics.jsonl"), '{"step":2}\n');
  await writeFile(join(root, "a", "notes.json"), JSON.stringify({ version: 1, tags: ["best"], note: "" }));
  await writeFile(join(root, "a", "rollouts.jsonl"), "");
  const [after, same] = (await rows.list()).rows;
  expect(after).toMatchObject({ ...before, updates: 2, tags: ["best"], hasRollouts: true, changedMs: after.changedMs });
  expect(same).toBe(other);
  await rm(join(root, "a", "notes.json"));
  expect(await rows.read("a")).toMatchObject({ tags: [], hasRollouts: true });
});
