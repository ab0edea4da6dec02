import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInHost } from "./support/command.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "merge-command-"));
});
afterAll(() => rm(folder, { recursive: true }));

const llamagym = (...args: readonly string[]) => runInHost(args, { cwd: folder });
const GENERATE = ["generate", "--device", "cpu", "-p", "14 or 20?", "-t", "0", "--model"];

describe("llamagym merge", () => {
  it(
    "merges the adapter of a run that started from a fine-tuned adapter, after which both give the same completion",
    { timeout: 120_000 },
    async () => {
      await writeFile(join(folder, "data.jsonl"), `${JSON.stringify({ prompt: "14 or 20?", completion: "stay" })}\n`);
      const steps = [
        ["sft", "--data", "data.jsonl", "--learning-rate", "3e-3", "--max-steps", "20", "--output", "sft"],
        ["train", "blackjack", "--adapter", "sft/model", "--turns", "64", "--batch-size", "64", "--output", "rl"],
        ["merge", "rl", "--output", "merged"],
      ];
      for (const step of steps) expect(await llamagym(...step)).toMatchObject({ status: 0 });
      expect(await readdir(join(folder, "merged"))).not.toContain("adapter_config.json");
      const [adapter, merged] = await Promise.all(
        ["rl/adapter", "merged"].map((model) => llamagym(...GENERATE, model)),
      );
      expect([adapter.status, merged.out]).toEqual([0, adapter.out]);
      const config = JSON.parse(await readFile(join(folder, "merged", "config.json"), "utf8")) as object;
      expect(config).toMatchObject({ model_type: "llama" });
    },
  );

  it("refuses a folder that is not empty and a whole model", { timeout: 60_000 }, async () => {
    await writeFile(join(folder, "file"), "");
    expect(await llamagym("merge", "rl", "--output", ".")).toMatchObject({
      status: 1,
      err: expect.stringContaining("is not empty") as string,
    });
    expect(await llamagym("merge", "merged", "--output", "again")).toMatchObject({
      status: 1,
      err: expect.stringContaining("there is no adapter to merge") as string,
    });
    expect(await llamagym("merge", "rl")).toMatchObject({ status: 2 });
  });
});
