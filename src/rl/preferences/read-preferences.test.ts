import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readPreferences, readUnpairedPreferences } from "./read-preferences.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "preferences-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function write(rows: readonly object[]): Promise<string> {
  const path = join(folder, `${Math.random()}.jsonl`);
  await writeFile(path, rows.map((row) => JSON.stringify(row)).join("\n"));
  return path;
}

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

/** Reads the only pair of a file, without its source. */
async function readPair(row: object, prompts: "chat" | "text" = "chat") {
  const { examples } = await readPreferences(await write([row]), { prompts });
  const { source: _, ...example } = examples[0];
  return example;
}

describe("readPreferences", () => {
  const messages = { prompt: [user("a")], chosen: [assistant("b")], rejected: [assistant("c")] };

  it.each([
    ["messages", messages],
    ["texts", { prompt: "a", chosen: "b", rejected: "c" }],
    ["an implicit prompt", { chosen: [user("a"), assistant("b")], rejected: [user("a"), assistant("c")] }],
    [
      "a text prompt that the conversations contain",
      { prompt: "a", chosen: [user("a"), assistant("b")], rejected: [user("a"), assistant("c")] },
    ],
    [
      "LLaMA-Factory's form",
      {
        conversations: [{ from: "human", value: "a" }],
        chosen: { from: "gpt", value: "b" },
        rejected: { from: "gpt", value: "c" },
      },
    ],
    [
      "JSON text, as in CSV files",
      { prompt: JSON.stringify([user("a")]), chosen: JSON.stringify([assistant("b")]), rejected: "c" },
    ],
    ["a question", { question: "a", chosen: "b", rejected: "c" }],
  ])("reads %s", async (_, row) => {
    expect(await readPair(row)).toEqual(messages);
  });

  it("keeps texts where prompts are texts, and where the prompt is the beginning of both", async () => {
    const texts = { prompt: "The sky is", chosen: " blue", rejected: " green" };
    expect(await readPair(texts, "text")).toEqual(texts);
    expect(await readPair({ chosen: "The sky is blue", rejected: "The sky is green" })).toEqual(texts);
  });

  it("adds the system message, tools and variables to the prompt", async () => {
    const tools = [{ type: "function", function: { name: "f" } }];
    const row = { prompt: "a", chosen: "b", rejected: "c", system: "s", tools, chat_template_kwargs: { x: 1 } };
    const prompt = [{ role: "system", content: "s" }, user("a")];
    expect(await readPair(row, "text")).toEqual({ ...messages, prompt, tools, variables: { x: 1 } });
  });

  it.each([
    [{ prompt: "a", chosen: "b" }, /line 1: it must have "chosen" and "rejected".* its keys are prompt, chosen/],
    [{ chosen: "same", rejected: "same" }, /there is no prompt/],
    [{ chosen: [assistant("b")], rejected: [assistant("c")] }, /do not begin with the same message/],
    [{ prompt: "a", question: "b", chosen: "b", rejected: "c" }, /both "prompt" and "question"/],
    [{ prompt: "a", chosen: 5, rejected: "c" }, /"chosen" must be a text or messages/],
    [{ prompt: "a", chosen: "b", rejected: "c", images: ["x"] }, /"images" is not supported/],
    [{ prompt: "a", chosen: [user("b")], rejected: "c" }, /"chosen" has no message of the assistant/],
  ])("rejects %j", async (row, message) => {
    await expect(readPreferences(await write([row]))).rejects.toThrow(message);
  });

  it("names invalid lines and unused columns", async () => {
    const path = await write([{ ...messages, score_chosen: 5 }, { prompt: "a" }]);
    const read = await readPreferences(path, { onInvalidLine: "skip" });
    expect(read.invalidLines).toMatchObject([{ line: 2 }]);
    expect(read.unusedColumns).toEqual(["score_chosen"]);
  });
});

describe("readUnpairedPreferences", () => {
  it("reads labels, and pairs as two completions", async () => {
    const rows = [
      { prompt: "a", completion: "b", label: true },
      { instruction: "a", input: "x", output: "c", label: 0 },
      { prompt: "a", chosen: "d", rejected: "e" },
    ];
    const { examples, unusedColumns } = await readUnpairedPreferences(await write(rows));
    expect(examples.map((example) => ({ ...example, source: undefined }))).toEqual([
      { prompt: "a", completion: "b", label: true },
      { prompt: "a\n\nx", completion: "c", label: false },
      { prompt: "a", completion: "d", label: true },
      { prompt: "a", completion: "e", label: false },
    ]);
    expect(unusedColumns).toEqual([]);
  });

  it.each([
    [{ prompt: "a", completion: "b" }, /must have a prompt .*"label"/],
    [{ prompt: "a", completion: [user("b")], label: true }, /"completion" has no message of the assistant/],
    [
      { prompt: "a", completion: "b", label: "good" },
      /"label" must be true, for a desirable completion, or false, got "good"/,
    ],
  ])("rejects %j", async (row, message) => {
    await expect(readUnpairedPreferences(await write([row]))).rejects.toThrow(message);
  });
});
