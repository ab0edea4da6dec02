import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInHost } from "./support/command.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "preference-command-"));
  const pairs = [4, 9, 12, 18, 20].map((sum) => {
    const [chosen, rejected] = sum < 17 ? ["hit", "stay"] : ["stay", "hit"];
    return { prompt: `You have ${sum}. hit or stay?`, chosen, rejected, score: 1 };
  });
  await writeFile(join(folder, "pairs.jsonl"), pairs.map((row) => JSON.stringify(row)).join("\n"));
  await writeFile(join(folder, "broken.jsonl"), JSON.stringify({ prompt: "a", chosen: "b" }));
});
afterAll(() => rm(folder, { recursive: true }));

const run = async (...args: string[]) => runInHost([...args, "--device", "cpu", "--threads", "1"], { cwd: folder });

describe.each(["dpo", "kto"])("llamagym %s", (command) => {
  it("trains the embedded model on pairs, resumes, and saves the result", async () => {
    const output = `run-${command}`;
    const result = await run(command, "--data", "pairs.jsonl", "-o", output, "--max-steps", "6", "--eval-split", "0.2");
    expect([result.status, result.err]).toEqual([0, expect.stringContaining("These columns are not used: score.")]);
    expect(result.out).toMatch(command === "dpo" ? /^4 pairs are trained in 6 updates\./m : /^8 completions/m);
    const records = (await readFile(join(folder, output, "metrics.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, number>);
    expect(records).toHaveLength(6);
    expect(records[5][`${command}/rewards/margins`]).toBeGreaterThan(records[0][`${command}/rewards/margins`]);
    expect(records[5][`${command}/eval_loss`]).toBeGreaterThan(0);
    const files = ["checkpoints", "config.json", "curve.svg", "model"];
    expect(await readdir(join(folder, output))).toEqual(expect.arrayContaining(files));
    const again = await run(command, "--resume", output);
    expect([again.status, again.err]).toEqual([0, expect.not.stringMatching(/Error/)]);
    const other = command === "dpo" ? "kto" : "dpo";
    expect((await run(other, "--resume", output)).err).toMatch(new RegExp(`llamagym ${command} --resume`));
  });

  it.each([
    [[], 2, /--data is missing/],
    [["--data", "broken.jsonl"], 1, /broken\.jsonl, line 1: it must have/],
    [["--data", "pairs.jsonl", "--loss-type", "aot"], 2, /--loss-type must be/],
    [["--data", "pairs.jsonl", "--max-length", "5"], 1, /None of the \d+ examples has tokens of its completions/],
  ])("rejects %j in one line, and leaves no folder", async (args, status, message) => {
    const result = await run(command, ...args, "--output", "rejected");
    expect(result.err).toMatch(message);
    expect(result.err.trim().split("\n")).toHaveLength(1);
    expect(result.status).toBe(status);
    expect(await readdir(folder)).not.toContain("rejected");
  });
});
