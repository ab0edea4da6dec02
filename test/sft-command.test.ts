import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, runInHost } from "./support/command.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sft-command-"));
  const lines = [
    { prompt: "14 or 20?", completion: "stay" },
    { question: "6 or 7?", answer: "hit" },
  ];
  await writeFile(join(folder, "good.jsonl"), lines.map((line) => JSON.stringify(line)).join("\n"));
  await writeFile(join(folder, "broken.jsonl"), `${JSON.stringify(lines[0])}\n{"prompt": "a"}\n`);
  const call = { role: "assistant", content: "", tool_calls: [{ function: { name: "hit", arguments: {} } }] };
  const untold = JSON.stringify({ messages: [{ role: "user", content: "a" }, call] });
  await writeFile(join(folder, "untold.jsonl"), `\n${untold}\n`);
});
afterAll(() => rm(folder, { recursive: true }));

const sftArgs = (...args: string[]) => ["sft", "--device", "cpu", "--threads", "1", ...args];

describe("llamagym sft", () => {
  it("fine-tunes the embedded model on a file and saves the result", async () => {
    const run = join(folder, "run");
    const settings = ["--learning-rate", "3e-3", "--max-steps", "20", "--seed", "1"];
    const { status, out } = await runCommand(sftArgs("--data", "good.jsonl", "--output", run, ...settings), {
      cwd: folder,
    });
    expect(out).toMatch(/^2 examples: \d+ tokens of 2 answers are trained in 20 updates\.\n/);
    expect(status).toBe(0);
    const args = ["generate", "--device", "cpu", "--model", join(run, "model"), "-p", "14 or 20?", "-t", "0"];
    expect((await runInHost(args)).out).toBe("stay\n");
    const metrics = (await readFile(join(run, "metrics.jsonl"), "utf8")).trim().split("\n");
    expect(metrics).toHaveLength(20);
    expect(await runInHost(sftArgs("--data", "good.jsonl", "--output", run), { cwd: folder })).toMatchObject({
      status: 1,
      err: expect.stringMatching(/already contains a run.*--resume/) as string,
    });
  });

  it.each([
    [[], 2, /--data is missing/],
    [["--data", "good.jsonl", "--learning-rat", "1"], 2, /Did you mean --learning-rate\?/],
    [["--data", "broken.jsonl"], 1, /broken\.jsonl, line 2: it must have .* its keys are prompt/],
    [
      ["--data", "untold.jsonl"],
      1,
      /untold\.jsonl, line 2 is invalid: The assistant's message 2 .* is not found in the text/,
    ],
    [["--data", "missing.jsonl"], 1, /missing\.jsonl does not exist/],
    [
      ["--data", "good.jsonl", "--max-length", "3", "--overlong", "error"],
      1,
      /good\.jsonl, line 2 has \d+ tokens, more than `maxLength` \(3\)/,
    ],
  ])("rejects %j in one line", async (args, status, message) => {
    const result = await runInHost(["sft", ...args], { cwd: folder });
    expect(result.err.trim().split("\n")).toHaveLength(1);
    expect(result.err).toMatch(message);
    expect(result.status).toBe(status);
  });
});
