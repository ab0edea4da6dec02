import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const COMMAND_PATH = fileURLToPath(new URL("../dist/app/cli/main.js", import.meta.url));
const execute = promisify(execFile);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sft-command-"));
  const lines = [
    { prompt: "14 or 20?", completion: "stay" },
    { question: "6 or 7?", answer: "hit" },
  ];
  await writeFile(join(folder, "good.jsonl"), lines.map((line) => JSON.stringify(line)).join("\n"));
  await writeFile(join(folder, "broken.jsonl"), `${JSON.stringify(lines[0])}\n{"prompt": "a"}\n`);
});
afterAll(() => rm(folder, { recursive: true }));

async function sft(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const all = [COMMAND_PATH, "sft", "--device", "cpu", "--threads", "1", ...args];
  return execute(process.execPath, all, { cwd: folder }).then(
    (result) => ({ code: 0, ...result }),
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );
}

describe("llamagym sft", () => {
  it("teaches the embedded model what a file shows, and says where the result is", async () => {
    const run = join(folder, "run");
    const settings = ["--learning-rate", "3e-3", "--max-steps", "20", "--seed", "1"];
    const { code, stdout } = await sft("--data", "good.jsonl", "--output", run, ...settings);
    expect(stdout).toMatch(/^2 examples; 20 updates\.\n/);
    expect(code).toBe(0);
    const asked = ["generate", "--device", "cpu", "--model", join(run, "model"), "-p", "14 or 20?", "-t", "0"];
    expect((await execute(process.execPath, [COMMAND_PATH, ...asked])).stdout).toBe("stay\n");
    const metrics = (await readFile(join(run, "metrics.jsonl"), "utf8")).trim().split("\n");
    expect(metrics).toHaveLength(20);
    expect(await sft("--data", "good.jsonl", "--output", run)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/holds a run already.*--resume/) as string,
    });
  });

  it.each([
    [[], 2, /--data is missing/],
    [["--data", "good.jsonl", "--learning-rat", "1"], 2, /Did you mean --learning-rate\?/],
    [["--data", "broken.jsonl"], 1, /broken\.jsonl, line 2: it has neither .* its keys are prompt/],
    [["--data", "missing.jsonl"], 1, /There is no file missing\.jsonl/],
    [
      ["--data", "good.jsonl", "--max-length", "3", "--overlong", "error"],
      1,
      /Example 1 has \d+ tokens, more than maxLength 3/,
    ],
  ])("says in a line what is wrong with %j", async (args, status, message) => {
    const { code, stderr } = await sft(...args);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(message);
    expect(code).toBe(status);
  });
});
