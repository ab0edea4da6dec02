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
  const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
  return readText("examples.jsonl", text, options);
}

async function readText(name: string, text: string | Uint8Array, options?: ReadExamplesOptions) {
  const path = join(folder, name);
  await writeFile(path, text);
  const { examples, invalidLines, unusedColumns } = await readExamples(path, options);
  return {
    examples: examples.map((example) => ({ ...example, source: undefined })),
    lines: examples.map(({ source = "" }) => Number(source.replace(/.*, (line|row) /, ""))),
    invalidLines,
    unusedColumns,
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

  it.each([
    [{ query: "a", response: "b" }, "a", "b"],
    [{ instruction: "a", context: "c", response: "b" }, "a\n\nc", "b"],
    [{ question: "a", context: "c", answer: "b" }, "a\n\nc", "b"],
    [{ instruction: "a", input: "i", context: null, output: "b" }, "a\n\ni", "b"],
  ])("reads the texts of %j", async (line, prompt, completion) => {
    expect(await read([line])).toMatchObject({ examples: [{ prompt, completion }], unusedColumns: [] });
  });

  it.each(["system_prompt", "system_message", "system"])("reads the system message of the column %s", async (key) => {
    const system = { role: "system", content: "s" };
    const rows = [
      { [key]: "s", messages: [user("a"), assistant("b")] },
      { [key]: "s", question: "a", answer: "b" },
    ];
    expect(await read(rows)).toMatchObject({
      examples: [
        { messages: [system, user("a"), assistant("b")] },
        { prompt: [system, user("a")], completion: [assistant("b")] },
      ],
      unusedColumns: [],
    });
  });

  it("reads messages of a prompt and its completion as JSON text, and as one message", async () => {
    const rows = [
      { prompt: JSON.stringify([user("a")]), completion: JSON.stringify([assistant("b")]) },
      { prompt: user("a"), completion: assistant("b") },
      { prompt: [{ from: "human", value: "a" }], completion: '{"role": "assistant", "content": "b"}' },
    ];
    const example = { prompt: [user("a")], completion: [assistant("b")] };
    expect((await read(rows)).examples).toEqual([example, example, example]);
    const json = { prompt: "[1, 2]", completion: '[{"a": 1}]' };
    expect((await read([json])).examples).toEqual([json]);
  });

  it("reads calls without a function, which have its name", async () => {
    const calls = [
      { name: "f", arguments: { a: 1 } },
      { id: "1", type: "function", function: { name: "g" } },
    ];
    for (const tool_calls of [calls, JSON.stringify(calls)]) {
      const { examples } = await read([{ messages: [user("a"), { ...assistant(""), tool_calls }] }]);
      const call = { type: "function", function: { name: "f", arguments: { a: 1 } } };
      expect(examples).toEqual([
        { messages: [user("a"), expect.objectContaining({ tool_calls: [call, calls[1]] }) as object] },
      ]);
    }
  });

  it("takes rows with a weight of 1 and a label that is true", async () => {
    const row = { prompt: "a", completion: "b" };
    const rows = [
      { ...row, weight: 1 },
      { ...row, train: true },
      { ...row, weight: "1.0" },
      { ...row, label: true },
    ];
    expect((await read(rows)).examples).toHaveLength(4);
    expect((await read([{ ...row, train: "BER-HAM", weight: null, label: 0 }])).examples).toHaveLength(1);
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

  it("keeps system, tools and template variables of messages, prompts and conversations", async () => {
    const wrapped = { type: "function", function: { name: "f", parameters: { type: "object" } } };
    const inputs = { tools: [wrapped], variables: { enable_thinking: false } };
    const columns = { system: "s", tools: [wrapped], chat_template_kwargs: inputs.variables };
    const asText = { ...columns, tools: JSON.stringify([wrapped]), chat_template_kwargs: '{"enable_thinking": false}' };
    const messages = [{ role: "system", content: "s" }, user("a"), assistant("b")];
    for (const given of [columns, asText, { ...asText, tools: undefined, functions: [wrapped.function] }]) {
      const { examples, unusedColumns } = await read([
        { ...given, messages: messages.slice(1) },
        { ...given, messages },
        { ...given, prompt: "a", completion: "b" },
        { ...given, instruction: "a", output: "b", input: "" },
      ]);
      const completion = { prompt: messages.slice(0, 2), completion: [messages[2]], ...inputs };
      expect(examples).toEqual([{ messages, ...inputs }, { messages, ...inputs }, completion, completion]);
      expect(unusedColumns).toEqual([]);
    }
    const conversations = [
      { from: "human", value: "a" },
      { from: "gpt", value: "b" },
    ];
    const { examples } = await read([{ conversations, tools: JSON.stringify([wrapped.function]), system: "" }]);
    expect(examples).toEqual([{ messages: messages.slice(1), tools: [wrapped] }]);
  });

  it("reads LLaMA-Factory's history, whose answers are trained, and its function calls and observations", async () => {
    const line = { instruction: "c", output: "d", history: [["a", "b"]], system: "s" };
    expect((await read([line])).examples).toEqual([
      { messages: [{ role: "system", content: "s" }, user("a"), assistant("b"), user("c"), assistant("d")] },
    ]);
    const conversations = [
      { from: "human", value: "a" },
      { from: "function_call", value: '{"name": "f", "arguments": {"x": 1}}' },
      { from: "observation", value: "2" },
      { from: "gpt", value: "b" },
    ];
    const call = { type: "function", function: { name: "f", arguments: { x: 1 } } };
    expect((await read([{ conversations }])).examples).toEqual([
      {
        messages: [
          user("a"),
          { role: "assistant", content: "", tool_calls: [call] },
          { role: "tool", content: "2" },
          assistant("b"),
        ],
      },
    ]);
  });

  it.each(["gpt", "chatgpt", "model", "assistant"])("reads answers from %s", async (from) => {
    const conversations = [
      { from: "human", value: "a" },
      { from, value: "b" },
    ];
    expect((await read([{ conversations }])).examples).toEqual([{ messages: [user("a"), assistant("b")] }]);
  });

  it("reads OpenAI's function calls, and calls as text", async () => {
    const call = { name: "f", arguments: '{"x": 1}' };
    const messages = [
      user("a"),
      { role: "assistant", content: null, function_call: call },
      { role: "function", name: "f", content: "2" },
    ];
    const calls = [{ type: "function", function: call }];
    expect((await read([{ messages }])).examples).toEqual([
      {
        messages: [
          user("a"),
          { role: "assistant", content: undefined, tool_calls: calls },
          { role: "tool", name: "f", content: "2" },
        ],
      },
    ]);
    const written = [user("a"), { role: "assistant", tool_calls: JSON.stringify(calls) }];
    expect((await read([{ messages: written }])).examples).toMatchObject([{ messages: [{}, { tool_calls: calls }] }]);
  });

  it.each([{ weight: 0 }, { train: false }, { training: false, weight: 0 }])(
    "reads %j of an answer as its weight",
    async (flags) => {
      const messages = [user("a"), { ...assistant("b"), ...flags }, user("c"), { ...assistant("d"), train: true }];
      expect((await read([{ messages }])).examples).toEqual([
        { messages: [user("a"), { ...assistant("b"), weight: 0 }, user("c"), { ...assistant("d"), weight: 1 }] },
      ]);
    },
  );

  it("reads the form of a row whose other forms are null", async () => {
    const nothing = {
      messages: null,
      conversations: null,
      tokens: null,
      prompt: null,
      completion: null,
      text: null,
      system: null,
      tools: null,
    };
    const { examples } = await read([
      { ...nothing, prompt: "a", completion: "b" },
      { ...nothing, text: "a" },
      { ...nothing, messages: [user("a"), { ...assistant("b"), weight: null, tool_calls: null }] },
      { ...nothing, tokens: [1, 2], mask: [0, 1] },
    ]);
    expect(examples).toMatchObject([
      { prompt: "a", completion: "b" },
      { prompt: "", completion: "a" },
      { messages: [user("a"), assistant("b")] },
      { tokens: [1, 2], lossMask: [0, 1] },
    ]);
  });

  it("reads parts without a type, and the loss of ms-swift's messages", async () => {
    const part = { text: "a" };
    const { examples } = await read([
      { messages: [{ role: "user", content: [part] }, { ...assistant("b"), loss: false }, user("c"), assistant("d")] },
    ]);
    expect(examples[0]).toMatchObject({
      messages: [
        { content: [{ type: "text", text: "a" }] },
        { ...assistant("b"), weight: 0 },
        user("c"),
        assistant("d"),
      ],
    });
    expect(JSON.stringify(examples[0])).not.toContain("loss");
  });

  it("reads tokens as Transformers and TRL write them", async () => {
    const { examples } = await read([
      { input_ids: [1, 2, 3], labels: [-100, 2, -100], attention_mask: [1, 1, 1] },
      { input_ids: [1, 2, 3], completion_mask: [0, 1, 1], assistant_masks: [1, 0, 1] },
      { input_ids: [1, 2, 3] },
    ]);
    expect(examples.map((example) => "lossMask" in example && example.lossMask)).toEqual([
      [0, 1, 0],
      [0, 0, 1],
      [1, 1, 1],
    ]);
  });

  it("names the columns that are not used", async () => {
    const { unusedColumns } = await read([
      { instruction: "a", output: "b", topic: "c", category: null },
      { messages: [user("a"), assistant("b")], prompt: "a", id: 1 },
      { env: "blackjack", return: 1, infos: [], messages: [user("a"), assistant("b")] },
    ]);
    expect(unusedColumns).toEqual(["topic", "prompt", "id"]);
  });

  const chat = { messages: [user("a"), assistant("b")] };
  it.each([
    [{ ...chat, tools: "f" }, /line 1: it has "tools" as text that is not JSON/],
    [{ ...chat, tools: { name: "f" } }, /"tools" must be an array of JSON schemas/],
    [{ ...chat, tools: [chat], functions: [chat] }, /both "tools" and "functions"/],
    [{ ...chat, chat_template_kwargs: [1] }, /"chat_template_kwargs" must be an object/],
    [{ ...chat, chat_template_kwargs: { chat_template: "x" } }, /must not have "chat_template"/],
    [
      { messages: [{ role: "system", content: "x" }, ...chat.messages], system: "y" },
      /"system" and a system message with another/,
    ],
    [{ ...chat, images: ["a.png"] }, /"images" is not supported/],
    [{ ...chat, weight: 0 }, /it has the "weight" 0, but only messages have one/],
    [{ prompt: "a", completion: "b", train: false }, /it has the "train" false/],
    [{ prompt: "a", completion: "b", loss_weight: "0.5" }, /it has the "loss_weight" 0\.5/],
    [{ prompt: "a", completion: "b", label: false }, /its "label" is false: train rows with labels by llamagym kto/],
    [{ prompt: "a", chosen: "b", rejected: "c" }, /train preferences by llamagym dpo/],
    [{ prompt: "a", query: "c", response: "b" }, /both "prompt" and "query"/],
    [{ question: "a", context: { sentences: [] }, answer: "b" }, /"context" must be text/],
    [{ ...chat, system: "x", system_prompt: "y" }, /"system" and "system_prompt" with other text/],
    [{ messages: [{ role: "User", content: "a" }, assistant("b")] }, /message 1 has the role "User"; write "user"/],
    [
      {
        conversations: [
          { from: "Human", value: "a" },
          { from: "GPT", value: "b" },
        ],
      },
      /message 1 has the role "Human"; write "human"/,
    ],
    [{ messages: [user("a"), { ...assistant("b"), loss_mask: 0 }] }, /"loss_mask", which is not supported/],
    [
      { messages: [{ role: "user", content: [{ type: "image_url" }] }, assistant("b")] },
      /message 1 has a part of type "image_url"/,
    ],
    [{ messages: [user("a"), { ...assistant("b"), weight: 0.5 }] }, /message 2 has 0\.5 as "weight"/],
    [
      { messages: [user("a"), { ...assistant("b"), weight: 1, train: false }] },
      /message 2 has a "train" that contradicts "weight"/,
    ],
    [{ messages: [{ ...user("a"), train: true }, assistant("b")] }, /message 1 of the user has "train"/],
    [{ messages: [user("a"), { ...assistant("b"), train_detail: [{}] }] }, /"train_detail", which is not supported/],
    [
      {
        conversations: [
          { from: "narrator", value: "a" },
          { from: "gpt", value: "b" },
        ],
      },
      /message 1 is from "narrator"; known are human, /,
    ],
    [
      {
        conversations: [
          { from: "human", value: "a" },
          { from: "function_call", value: "f(1)" },
        ],
      },
      /message 2 has "function_call" as text that is not JSON/,
    ],
    [{ messages: [user("a"), { ...assistant("b"), loss_scale: 0.5 }] }, /"loss_scale", which is not supported/],
    [
      { messages: [user("a"), { role: "assistant", content: [{ type: "tool_use", name: "f", input: {} }] }] },
      /message 2 has a part of type "tool_use"; only text is supported, calls are "tool_calls"/,
    ],
    [{ messages: [{ role: "user", text: "a" }, assistant("b")] }, /message 1 has no content/],
    [{ messages: [{ role: "user", content: 5 }, assistant("b")] }, /message 1 has 5 as content; write it as text/],
    [{ messages: [user("a"), { role: "assistant", content: { a: 1 } }] }, /message 2 has \{"a":1\} as content/],
    [{ input_ids: [1, 2, 3, 4], position_ids: [0, 1, 0, 1] }, /several packed examples/],
    [{ input_ids: [1, 2, 3, 4], seq_lengths: [2, 2] }, /several packed examples/],
    [{ messages: ["a"] }, /message 1 is not an object/],
    [{ instruction: "a", output: "b", history: ["c"] }, /"history" must be an array of pairs/],
    [{ question: "a", answer: "b", input: "c" }, /both "question" and "input"/],
    [{ prompt: "a", completion: "b", response: "c" }, /both "completion" and "response"/],
    [{ input_ids: [1, 2], labels: [1, 3] }, /label 2 must be the token itself \(2\) or -100, got 3/],
    [{ input_ids: [1, 2], labels: [1] }, /"input_ids" and "labels" must be arrays of integers of equal length/],
    [{ input_ids: [0, 2], attention_mask: [0, 1] }, /token 1 is padding/],
    [{ input_ids: ["1"] }, /"input_ids" must be an array of integers/],
  ])("rejects %j by name", async (row, message) => {
    await expect(read([row])).rejects.toThrow(message);
  });

  describe("of other formats", () => {
    it("reads a JSON array, and names a row by its number", async () => {
      const rows = [
        { prompt: "a", completion: "b" },
        { prompt: "c", completion: "d" },
      ];
      const { examples, lines } = await readText("rows.json", `\uFEFF \n${JSON.stringify(rows, null, 2)}`);
      expect(examples).toEqual(rows);
      expect(lines).toEqual([1, 2]);
      await expect(readText("rows.json", '[{"prompt": "a"}]')).rejects.toThrow(/rows\.json, row 1: it must have/);
      await expect(readText("rows.json", '[{"prompt": "a"')).rejects.toThrow(/rows\.json: invalid JSON/);
      const skipped = await readText("rows.json", JSON.stringify([3, ...rows]), { onInvalidLine: "skip" });
      expect(skipped.invalidLines).toMatchObject([
        { line: 1, name: expect.stringMatching(/rows\.json, row 1$/) as string },
      ]);
    });

    it.each([
      ["rows.jsonl", '{"prompt": "a", "completion": "b"}\n{"prompt": "\u00e4", "completion": "b"}', 2],
      ["rows.json", '[{"prompt": "a",\n"completion": "\u00e4"}]', 2],
      ["rows.csv", "prompt,completion\na,b\n\u00e4,b\n", 3],
    ])("refuses %s in another encoding than UTF-8", async (name, text, line) => {
      await expect(readText(name, Buffer.from(text, "latin1"))).rejects.toThrow(
        `${name}: line ${line} has bytes that are not UTF-8. Convert the file`,
      );
      const replaced = text.replace("\u00e4", "\uFFFD");
      expect((await readText(name, replaced)).examples.length).toBeGreaterThan(0);
    });

    it("reads CSV and TSV, with JSON in cells", async () => {
      const messages = JSON.stringify([user("a"), assistant("b")]).replaceAll('"', '""');
      const csv = `\uFEFFprompt,completion,messages\r\na,"b, ""c""\nd",\r\n\r\n,,"${messages}"\r\n`;
      const { examples, lines } = await readText("rows.csv", csv);
      expect(examples).toEqual([{ prompt: "a", completion: 'b, "c"\nd' }, chat]);
      expect(lines).toEqual([2, 5]);
      expect((await readText("rows.tsv", "prompt\tcompletion\na,b\tc")).examples).toEqual([
        { prompt: "a,b", completion: "c" },
      ]);
    });

    it.each([
      ["rows.csv", "prompt,completion\na", /rows\.csv, line 2: it has 1 cells, but the header has 2 columns/],
      ["rows.csv", 'prompt,completion\na,"b', /rows\.csv: line 2: the quote that opens a cell is not closed/],
      ["rows.csv", 'prompt,completion\n"a"b,c', /rows\.csv: line 2: text follows the closing quote/],
      ["rows.csv", "prompt,prompt\na,b", /two columns have the name "prompt"/],
      ["rows.parquet", "PAR1\u0000", /is a Parquet file; .* Convert it first, .* with python -c/],
      ["rows.jsonl.gz", Uint8Array.of(0x1f, 0x8b, 8, 0), /is a gzip file/],
      ["rows.json", '{\n  "data": []\n}', /line 1: invalid JSON .* one JSON object per line, or is one array/],
    ])("rejects %s with %j", async (name, text, message) => {
      await expect(readText(name, text)).rejects.toThrow(message);
    });
  });
});
