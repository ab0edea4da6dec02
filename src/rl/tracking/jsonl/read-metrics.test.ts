import { appendFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readMetrics } from "./read-metrics.js";
import { openJsonlTracker } from "./jsonl-tracker.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "metrics-"));
});
afterEach(async () => rm(folder, { recursive: true, force: true }));

it("reads what was logged and skips incomplete lines", async () => {
  const path = join(folder, "metrics.jsonl");
  const tracker = await openJsonlTracker(folder);
  await tracker.log(1, { reward: 0.1 + 0.2, kl: NaN });
  await tracker.log(2, { reward: -1e-12 });
  await appendFile(path, '[1]\nnull\n{"step":3,"name":"text","reward":3}\n{"step":4,"rew');
  expect(await readMetrics(path)).toEqual([
    { step: 1, reward: 0.1 + 0.2, kl: NaN },
    { step: 2, reward: -1e-12 },
    { step: 3, reward: 3 },
  ]);
  await tracker.close();
});

it("reports a missing file", async () => {
  await expect(readMetrics(join(folder, "none.jsonl"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
});
