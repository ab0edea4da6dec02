import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readExamples, type ReadExamplesOptions } from "./read-examples.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "jsonl-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(lines: readonly (string | object)[], options?: ReadExamplesOptions) {
  const path = join(folder, "examples.jsonl");
  await writeFile(path, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
  const { examples, invalidLines } = await readExamples(path, options);
  return {
    examples: examples.map((example) => ({ ...example, source: undefined })),
    lines: examples.map(({ source = "" }) => Number(source.replace(`${path}, line `, ""))),
    invalidLines,
  };
}

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

describe("readExamples", () => {
  it("reads messages and ShareGPT conversations", async () => {
    const messages = [user("a"), assistant("b")];
    const conversations = [
      { from: "human", value: "a" },
      { from: "gpt", value: "b" },
    ];
    const { examples, lines } = await read([{ messages }, "", { conversations }]);
    expect(examples).toEqual([{ messages }, { messages }]);
    expect(lines).toEqual([1, 3]);
  });

  it.each([
    [{ prompt: "a", completion: "b" }],
    [{ input: "a", output: "b" }],
    [{ question: "a", answer: "b" }],
    [{ instruction: "a", input: "", output: "b" }],
    [{ prompt: "a", response: "b" }],
  ])("reads %j", async (line) => {
    expect((await read([line])).examples).toEqual([{ prompt: "a", completion: "b" }]);
    expect((await read([line], { prompts: "chat" })).examples).toEqual([
      { prompt: [user("a")], completion: [assistant("b")] },
    ]);
  });

  it("appends the input to an instruction and prepends the system prompt", async () => {
    const line = { system: "s", instruction: "Add.", input: "1 2", output: "3" };
    expect((await read([line])).examples).toEqual([
      { prompt: [{ role: "system", content: "s" }, user("Add.\n\n1 2")], completion: [assistant("3")] },
    ]);
  });

  it("reads texts and tokens, after a byte order mark and with Windows line endings", async () => {
    const lines = ['\uFEFF{"text": "a"}\r', '{"tokens": [1, 2], "mask": [0, 1]}\r'];
    expect((await read(lines)).examples).toEqual([
      { prompt: "", completion: "a" },
      { tokens: [1, 2], lossMask: [0, 1] },
    ]);
  });

  it.each([
    ["{broken", /line 3: invalid JSON/],
    ["[1, 2]", /line 3: the line must be a JSON object/],
    ['{"promt": "a", "completion": "b"}', /line 3: it must have .* its keys are promt, completion/],
    ['{"messages": [{"role": "user", "content": "a"}]}', /line 3: there is no assistant message/],
    ['{"messages": []}', /line 3: messages must be a non-empty array/],
    ['{"messages": [{"content": "a"}]}', /line 3: message 1 has no role/],
    ['{"tokens": [1, 2], "mask": [1]}', /line 3: "tokens" and "mask"/],
  ])("rejects %s with its line number, or skips it", async (broken, message) => {
    const good = { prompt: "a", completion: "b" };
    await expect(read([good, "", broken, good])).rejects.toThrow(message);
    const { examples, invalidLines } = await read([good, "", broken, good], { onInvalidLine: "skip" });
    expect(examples).toEqual([good, good]);
    expect(invalidLines.map(({ line }) => line)).toEqual([3]);
  });

  it("rejects a missing file", async () => {
    await expect(readExamples(join(folder, "missing.jsonl"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await expect(readExamples(folder)).rejects.toMatchObject({ code: "FILE_READ_FAILED" });
  });
});
