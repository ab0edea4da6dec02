import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
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
  const ids = [5, 6, 7].map((id) => ({ input_ids: [1, id], labels: [-100, id] }));
  const tokens = [...ids, { input_ids: [1, 999_999], labels: [-100, 999_999] }];
  await writeFile(join(folder, "tokens.jsonl"), tokens.map((line) => JSON.stringify(line)).join("\n"));
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
    [
      ["--data", "tokens.jsonl"],
      1,
      /tokens\.jsonl, line 4 is invalid: token 2 is 999999, but the model's tokens are 0 to \d+/,
    ],
    [["--data", "missing.jsonl"], 1, /missing\.jsonl does not exist/],
    [
      ["--data", "good.jsonl", "--max-length", "3", "--overlong", "error"],
      1,
      /good\.jsonl, line 2 has \d+ tokens, more than `maxLength` \(3\)/,
    ],
  ])("rejects %j in one line, and leaves no folder", async (args, status, message) => {
    const output = args.length === 0 ? [] : ["--output", "rejected"];
    const result = await runInHost(["sft", ...args, ...output], { cwd: folder });
    expect(result.err.trim().split("\n")).toHaveLength(1);
    expect(result.err).toMatch(message);
    expect(result.status).toBe(status);
    expect(await readdir(folder)).not.toContain("rejected");
  });

  it("says which columns are not used", async () => {
    const rows = [{ instruction: "14 or 20?", output: "stay", notes: "a hand" }];
    await writeFile(join(folder, "dolly.json"), JSON.stringify(rows));
    const { err, status } = await runInHost(sftArgs("--data", "dolly.json", "--output", "dolly", "--max-steps", "1"), {
      cwd: folder,
    });
    expect([status, err]).toEqual([0, expect.stringContaining("Warning: These columns are not used: notes.")]);
  });

  it("says that the chat template renders no tools, unless they are written as text", async () => {
    const bet = { type: "function", function: { name: "bet", parameters: { type: "object", properties: {} } } };
    const call = { id: "1", type: "function", function: { name: "bet", arguments: "{}" } };
    const user = { role: "user", content: "14 or 20?" };
    const answers = {
      text: { role: "assistant", content: "stay" },
      call: { role: "assistant", content: "", tool_calls: [call] },
    };
    const run = async (name: keyof typeof answers, ...args: string[]) => {
      await writeFile(
        join(folder, `${name}.json`),
        JSON.stringify([{ messages: [user, answers[name]], tools: [bet] }]),
      );
      return runInHost(sftArgs("--data", `${name}.json`, "--output", `tools-${name}`, "--max-steps", "1", ...args), {
        cwd: folder,
      });
    };
    const plain = await run("text");
    expect(plain.err).toContain("These columns are not used: tools (the chat template renders none; --tool-calls text");
    expect((await run("call")).err).toMatch(/call\.json.* is not found in the text .*--tool-calls text/);
    const { err, out, status } = await run("call", "--tool-calls", "text");
    expect([status, err]).toEqual([0, expect.not.stringContaining("not used")]);
    expect(out).toMatch(/1 examples: \d+ tokens of 1 answers are trained/);
  });

  it("says which parts of answers the chat template does not print", async () => {
    const think = { role: "assistant", content: "stay", reasoning_content: "20 is high" };
    const call = { type: "function", function: { name: "bet", arguments: {} } };
    const calls = { role: "assistant", content: "I bet.", tool_calls: [call] };
    const rows = [think, calls].map((answer) => ({ messages: [{ role: "user", content: "20?" }, answer] }));
    await writeFile(join(folder, "parts.json"), JSON.stringify(rows));
    const printsAll =
      "{% for m in messages %}{{ m.role }} {{ m.reasoning_content }}\n{% generation %}{{ m.content | trim }}" +
      "{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}{% endgeneration %}{% endfor %}";
    const printsCalls =
      "{% for m in messages %}{{ m.role }} {% generation %}{% if m.tool_calls %}{{ m.tool_calls | tojson }}" +
      "{% else %}{{ m.content }}{% endif %}{% endgeneration %}{% endfor %}";
    await writeFile(join(folder, "plain.json"), JSON.stringify([{ prompt: "20?", completion: "stay" }]));
    const run = async (name: string, template: string, data: readonly string[]) => {
      await cp(fileURLToPath(new URL("../models/llamagym-1m", import.meta.url)), join(folder, name), {
        recursive: true,
      });
      await writeFile(join(folder, name, "chat_template.jinja"), template);
      const args = [...data, "--model", name, "--output", `${name}-run`, "--max-steps", "1"];
      return runInHost(sftArgs(...args), { cwd: folder });
    };
    const data = ["--data", "parts.json"];
    const all = await run("all", printsAll, data);
    const some = await run("some", printsCalls, data);
    const evaluated = await run("evaluated", printsCalls, ["--data", "plain.json", "--eval-data", "parts.json"]);
    const lost = /not used: the reasoning of answers \(.*, the content of answers with tool_calls \(/;
    expect([all.status, all.err]).toEqual([0, expect.not.stringContaining("not used")]);
    expect([some.status, some.err]).toEqual([0, expect.stringMatching(lost)]);
    expect([evaluated.status, evaluated.err]).toEqual([0, expect.stringMatching(lost)]);
  });

  it("trains tokens on a model without a tokenizer", async () => {
    const model = join(folder, "without-tokenizer");
    await mkdir(model);
    for (const name of ["config.json", "model.safetensors"])
      await copyFile(fileURLToPath(new URL(`../models/llamagym-1m/${name}`, import.meta.url)), join(model, name));
    await writeFile(join(folder, "ids.jsonl"), JSON.stringify({ input_ids: [1, 5, 6], labels: [-100, 5, 6] }));
    const data = ["--model", "without-tokenizer", "--data", "ids.jsonl", "--max-steps", "1", "--output", "ids"];
    const { out, status } = await runInHost(sftArgs(...data), { cwd: folder });
    expect([status, out]).toEqual([0, expect.stringContaining("1 examples: 2 tokens of 1 answers are trained")]);
  });
});
