import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { AutoTokenizer, type Tokenizer } from "../../models/text/index.js";
import { encodeDataset } from "./encode-dataset.js";
import { encodeExample, type SftExample } from "./sft-example.js";

const folder = fileURLToPath(new URL("../../../test/fixtures/text/model", import.meta.url));

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await AutoTokenizer.fromPretrained(folder);
});

/** Texts of the spans of tokens in the loss. */
function lossTexts(example: SftExample): string[] {
  const { tokens, lossMask } = encodeExample(example, () => tokenizer);
  const texts: string[] = [];
  let run: number[] = [];
  tokens.forEach((token, i) => {
    if (lossMask[i] !== 0) run.push(token);
    if (run.length > 0 && (lossMask[i] === 0 || i === tokens.length - 1)) {
      texts.push(tokenizer.decodeContinuation(run));
      run = [];
    }
  });
  return texts;
}

describe("encodeExample", () => {
  it("masks all but the assistant's messages and their end tokens", () => {
    const messages = [
      { role: "system", content: "Play." },
      { role: "user", content: "hit or stay?" },
      { role: "assistant", content: "hit" },
      { role: "user", content: "again" },
      { role: "assistant", content: "stay, for now" },
    ];
    expect(lossTexts({ messages })).toEqual(["hit<|im_end|>", "stay, for now<|im_end|>"]);
    const { tokens } = encodeExample({ messages }, () => tokenizer);
    expect(tokens).toEqual(tokenizer.encode(tokenizer.applyChatTemplate(messages), { addSpecialTokens: false }));
  });

  it("masks the assistant's messages of a prompt", () => {
    const prompt = [
      { role: "user", content: "one" },
      { role: "assistant", content: "two" },
      { role: "user", content: "three" },
    ];
    expect(lossTexts({ prompt, completion: "four" })).toEqual(["four<|im_end|>"]);
    expect(lossTexts({ prompt, completion: [{ role: "assistant", content: "five" }] })).toEqual(["five<|im_end|>"]);
  });

  it("does not train answers whose weight is 0, with or without the prompt", () => {
    const messages = [
      { role: "user", content: "one" },
      { role: "assistant", content: "two", weight: 0 },
      { role: "user", content: "three" },
      { role: "assistant", content: "four", weight: 1 },
    ];
    expect(lossTexts({ messages })).toEqual(["four<|im_end|>"]);
    const { tokens, lossMask } = encodeExample({ messages }, () => tokenizer, { assistantOnlyLoss: false });
    const untrained = tokens.filter((_, i) => lossMask[i] === 0);
    expect(tokenizer.decodeContinuation(untrained)).toBe("two<|im_end|>");
    expect(tokenizer.decode(tokens)).toBe(tokenizer.applyChatTemplate(messages));
    const call = { role: "assistant", content: "", tool_calls: [], reasoning: "x", weight: 0 };
    expect(lossTexts({ messages: [...messages, call] })).toEqual(["four<|im_end|>"]);
    expect(() => lossTexts({ messages: [messages[0], { ...messages[1], weight: 2 }] })).toThrow(/must be 0, .* got 2/);
  });

  it("rejects tokens that the model does not have", () => {
    const encode = (tokens: number[]) =>
      encodeExample({ tokens, lossMask: tokens.map(() => 1) }, () => tokenizer, { vocabSize: 10 });
    expect(encode([0, 9]).tokens).toEqual([0, 9]);
    expect(() => encode([0, 10])).toThrow(/token 2 is 10, but the model's tokens are 0 to 9/);
    expect(() => encode([-1])).toThrow(/token 1 is -1/);
  });

  it("rejects an answer that the chat template leaves out, unless it belongs to the prompt", () => {
    const question = { role: "user", content: "stay?" };
    const call = { role: "assistant", content: "", tool_calls: [{ function: { name: "stay", arguments: {} } }] };
    const answer = { role: "assistant", content: "yes" };
    expect(() => lossTexts({ messages: [question, answer, question, call] })).toThrow(
      /The assistant's message 4 \(\{"role":"assistant","content":"","tool_calls":.*\) is not found in the text/,
    );
    expect(() => lossTexts({ prompt: [question], completion: [call] })).toThrow(/message 2/);
    expect(lossTexts({ prompt: [question, call, question], completion: [answer] })).toEqual(["yes<|im_end|>"]);
    expect(lossTexts({ messages: [question, { role: "assistant", content: "" }] })).toEqual(["<|im_end|>"]);
  });

  it("appends one end token to a text completion", () => {
    expect(lossTexts({ prompt: "The sum is", completion: " 14." })).toEqual([" 14.<|im_end|>"]);
    expect(lossTexts({ prompt: "The sum is", completion: " 14.<|im_end|>" })).toEqual([" 14.<|im_end|>"]);
    expect(lossTexts({ prompt: "", completion: "Fourteen" })).toEqual(["Fourteen<|im_end|>"]);
  });

  it("accepts tokens with a mask of the same length without a tokenizer", () => {
    const none = () => {
      throw new Error("no tokenizer");
    };
    const example = { tokens: [5, 6, 7], lossMask: [0, 0, 1] };
    expect(encodeExample(example, none)).toEqual(example);
    expect(() => encodeExample({ tokens: [5, 6, 7], lossMask: [1] }, none)).toThrow(/one value per token \(3\), got 1/);
  });
});

describe("encodeDataset", () => {
  const settings = { overlong: "truncate", assistantOnlyLoss: true, maxLength: 6 } as const;
  const short = { tokens: [1, 2, 3, 4], lossMask: [0, 0, 1, 1] };
  const long = { tokens: [1, 2, 3, 4, 5, 6, 7, 8], lossMask: [0, 0, 0, 0, 1, 1, 1, 1] };
  const late = { tokens: [1, 2, 3, 4, 5, 6, 7, 8], lossMask: [0, 0, 0, 0, 0, 0, 1, 1] };
  const encode = (examples: readonly SftExample[], other = {}) =>
    encodeDataset(examples, () => tokenizer, { ...settings, ...other });

  it("truncates long examples, and skips those without loss tokens", () => {
    const { examples, truncated, skipped } = encode([short, long, late]);
    expect(examples).toEqual([short, { tokens: [1, 2, 3, 4, 5, 6], lossMask: [0, 0, 0, 0, 1, 1] }]);
    expect({ truncated, skipped }).toEqual({ truncated: 2, skipped: 1 });
  });

  it("counts the trained tokens and answers", () => {
    expect(encode([short, long, late])).toMatchObject({ lossTokens: 4, answers: 2 });
    const two = { tokens: [1, 2, 3, 4, 5, 6], lossMask: [1, 1, 0, 1, 0, 1] };
    expect(encode([two])).toMatchObject({ lossTokens: 3, answers: 3 });
  });

  it("skips or rejects long examples, depending on `overlong`", () => {
    expect(encode([short, long], { overlong: "skip" })).toMatchObject({ examples: [short], skipped: 1, truncated: 0 });
    expect(() => encode([short, long], { overlong: "error" })).toThrow(
      /Example 2 has 8 tokens, more than `maxLength` \(6\)/,
    );
  });

  it("names an invalid example, and rejects a dataset without examples", () => {
    expect(() => encode([short, { messages: [] }])).toThrow(/Example 2 is invalid/);
    expect(() => encode([{ messages: [], source: "data.jsonl, line 7" }])).toThrow(/^data\.jsonl, line 7 is invalid/);
    expect(() => encode([])).toThrow(/There are no examples/);
    expect(() => encode([late])).toThrow(/None of the 1 examples has a loss token/);
  });

  it("has all tokens as loss tokens without assistantOnlyLoss", () => {
    expect(Array.from(encode([short], { assistantOnlyLoss: false }).examples[0].lossMask)).toEqual([1, 1, 1, 1]);
  });
});
