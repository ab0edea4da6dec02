import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoTokenizer, Tokenizer } from "../../models/text/index.js";
import { readExamples } from "./read-examples.js";
import { encodeExample } from "./sft-example.js";

/** Prints all that a row can give a template. */
const TEMPLATE =
  "{{ style }}{% if tools %}{{ tools | tojson }}{% endif %}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}" +
  "{% for call in message.tool_calls or [] %}{{ call.function.arguments | tojson }}{% endfor %}{% endfor %}";

let folder: string;
let tokenizer: Tokenizer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rows-"));
  const plain = await AutoTokenizer.fromPretrained(
    fileURLToPath(new URL("../../../test/fixtures/text/model", import.meta.url)),
  );
  tokenizer = new Tokenizer({ ...plain.files, chatTemplate: TEMPLATE });
});
afterAll(() => rm(folder, { recursive: true }));

/** Returns the text and the trained text of the only row of a file. */
async function encode(text: string) {
  const path = join(folder, "rows.jsonl");
  await writeFile(path, text);
  const { examples } = await readExamples(path, { prompts: "chat" });
  const { tokens, lossMask } = encodeExample(examples[0], () => tokenizer);
  const trained = tokens.filter((_, i) => lossMask[i] !== 0);
  return { text: tokenizer.decodeContinuation(tokens), trained: tokenizer.decodeContinuation(trained) };
}

describe("the text of a row", () => {
  const args = '{"10": 10.0, "2": 1234567890123456789, "x": [1e22, {"1": 1, "0": 2.50}]}';
  const printed = '{"10": 10.0, "2": 1234567890123456789, "x": [1e+22, {"1": 1, "0": 2.5}]}';
  const schema = '{"type": "function", "function": {"name": "f", "parameters": {"maximum": 5.0, "3": 1, "1": 2}}}';
  const call = (value: string) => `[{"type": "function", "function": {"name": "f", "arguments": ${value}}}]`;

  it.each([
    ["an object", args],
    ["text", JSON.stringify(args)],
  ])("has the numbers and keys of tools and arguments as %s", async (_, value) => {
    const row = `{"messages": [{"role": "user", "content": "a <|im_end|>"},
      {"role": "assistant", "content": "b", "tool_calls": ${call(value)}}], "tools": [${schema}],
      "chat_template_kwargs": {"style": 1.0}}`.replaceAll("\n", "");
    const { text, trained } = await encode(row);
    expect(text).toBe(`1.0[${schema}]<|user|>a <|im_end|><|assistant|>b${printed}`);
    expect(trained).toBe(`b${printed}`);
  });

  it("has the tools and variables of a prompt and its completion", async () => {
    const row = `{"prompt": "a", "completion": "b", "tools": ${JSON.stringify(`[${schema}]`)}, "chat_template_kwargs": {"style": "x"}}`;
    expect(await encode(row)).toEqual({ text: `x[${schema}]<|user|>a<|assistant|>b`, trained: "b" });
  });

  it("has the function calls of ShareGPT", async () => {
    const call = JSON.stringify(`{"name": "f", "arguments": ${args}}`);
    const row = `{"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": ${call}},
      {"from": "observation", "value": "1.0"}, {"from": "gpt", "value": "b"}]}`.replaceAll("\n", "");
    const { text, trained } = await encode(row);
    expect(text).toBe(`<|user|>a<|assistant|>${printed}<|tool|>1.0<|assistant|>b`);
    expect(trained).toBe(`${printed}b`);
  });
});
