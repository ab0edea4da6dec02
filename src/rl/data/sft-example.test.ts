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

/** The texts of the runs of learnt tokens. */
function learnt(example: SftExample): string[] {
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
  it("learns what the assistant says with its end tokens, and nothing else", () => {
    const messages = [
      { role: "system", content: "Play." },
      { role: "user", content: "hit or stay?" },
      { role: "assistant", content: "hit" },
      { role: "user", content: "again" },
      { role: "assistant", content: "stay, for now" },
    ];
    expect(learnt({ messages })).toEqual(["hit<|im_end|>", "stay, for now<|im_end|>"]);
    const { tokens } = encodeExample({ messages }, () => tokenizer);
    expect(tokens).toEqual(tokenizer.encode(tokenizer.applyChatTemplate(messages), { addSpecialTokens: false }));
  });

  it("learns only the completion where the prompt's messages have replies too", () => {
    const prompt = [
      { role: "user", content: "one" },
      { role: "assistant", content: "two" },
      { role: "user", content: "three" },
    ];
    expect(learnt({ prompt, completion: "four" })).toEqual(["four<|im_end|>"]);
    expect(learnt({ prompt, completion: [{ role: "assistant", content: "five" }] })).toEqual(["five<|im_end|>"]);
  });

  it("goes on with a text, and ends it once", () => {
    expect(learnt({ prompt: "The sum is", completion: " 14." })).toEqual([" 14.<|im_end|>"]);
    expect(learnt({ prompt: "The sum is", completion: " 14.<|im_end|>" })).toEqual([" 14.<|im_end|>"]);
    expect(learnt({ prompt: "", completion: "Fourteen" })).toEqual(["Fourteen<|im_end|>"]);
  });

  it("takes tokens as they are, without a tokenizer, if their mask fits", () => {
    const none = () => {
      throw new Error("no tokenizer");
    };
    const example = { tokens: [5, 6, 7], lossMask: [0, 0, 1] };
    expect(encodeExample(example, none)).toEqual(example);
    expect(() => encodeExample({ tokens: [5, 6, 7], lossMask: [1] }, none)).toThrow(/3 tokens, but a mask of 1/);
  });
});

describe("encodeDataset", () => {
  const settings = { overlong: "truncate", assistantOnlyLoss: true, maxLength: 6 } as const;
  const short = { tokens: [1, 2, 3, 4], lossMask: [0, 0, 1, 1] };
  const long = { tokens: [1, 2, 3, 4, 5, 6, 7, 8], lossMask: [0, 0, 0, 0, 1, 1, 1, 1] };
  const late = { tokens: [1, 2, 3, 4, 5, 6, 7, 8], lossMask: [0, 0, 0, 0, 0, 0, 1, 1] };
  const encode = (examples: readonly SftExample[], other = {}) =>
    encodeDataset(examples, () => tokenizer, { ...settings, ...other });

  it("cuts what is too long, and leaves out what then has nothing to learn", () => {
    const { examples, truncated, skipped } = encode([short, long, late]);
    expect(examples).toEqual([short, { tokens: [1, 2, 3, 4, 5, 6], lossMask: [0, 0, 0, 0, 1, 1] }]);
    expect({ truncated, skipped }).toEqual({ truncated: 2, skipped: 1 });
  });

  it("leaves out or refuses what is too long, where asked", () => {
    expect(encode([short, long], { overlong: "skip" })).toMatchObject({ examples: [short], skipped: 1, truncated: 0 });
    expect(() => encode([short, long], { overlong: "error" })).toThrow(/Example 2 has 8 tokens, more than maxLength 6/);
  });

  it("says which example cannot be used, and when none can", () => {
    expect(() => encode([short, { messages: [] }])).toThrow(/Example 2 cannot be used/);
    expect(() => encode([])).toThrow(/no example to learn from/);
    expect(() => encode([late])).toThrow(/None of the 1 examples has a token to learn/);
  });

  it("learns every token where asked", () => {
    expect(Array.from(encode([short], { assistantOnlyLoss: false }).examples[0].lossMask)).toEqual([1, 1, 1, 1]);
  });
});
