import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../test/support/random-model.js";
import type { LlamaGymError } from "../core/errors.js";
import type { ChatMessage } from "../models/text/index.js";
import { AutoModelForCausalLM } from "./auto-model.js";
import type { LanguageModel } from "./language-model.js";
import type { GenerationOptions } from "./generation-options.js";
import type { PromptInput } from "./prompt/encode-prompt.js";
import type { Completion } from "./completion.js";

const OPTIONS = { device: "cpu", threads: 1 } as const;
const hello: ChatMessage[] = [{ role: "user", content: "Hello there" }];

let model: LanguageModel;
let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await writeRandomModel());
  model = await AutoModelForCausalLM.fromPretrained(folder, OPTIONS);
});
afterAll(async () => {
  await model.close();
  await remove();
});

async function collect(
  input: PromptInput,
  options: GenerationOptions,
): Promise<{ pieces: string[]; completion: Completion }> {
  const stream = model.stream(input, options);
  const pieces: string[] = [];
  for (;;) {
    const { done, value } = await stream.next();
    if (done === true) return { pieces, completion: value };
    pieces.push(value);
  }
}

const errorLike = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as LlamaGymError;

describe("stream", () => {
  it("yields the text of the completion that it returns", async () => {
    const { pieces, completion } = await collect(hello, { maxNewTokens: 40, seed: 3, ignoreEos: true });
    expect(pieces.length).toBeGreaterThan(5);
    expect(pieces.join("")).toBe(completion.text);
    expect(completion.text).toBe(model.tokenizer.decode(completion.tokens, { skipSpecialTokens: true }));
    expect(completion).toMatchObject({ finishReason: "length", choice: undefined });
    expect([completion.tokens.length, completion.logProbs.length, completion.rawLogProbs.length]).toEqual([40, 40, 40]);
    expect(completion.promptTokens).toEqual(model.tokenizer.encodeChat(hello, { addGenerationPrompt: true }).ids);
  });

  it("aborts the completion when the reader leaves", async () => {
    for await (const piece of model.stream(hello, { maxNewTokens: 200, seed: 1, ignoreEos: true })) {
      expect(piece).not.toBe("");
      break;
    }
    const completions = await model.generateBatch([hello, hello, hello], { maxNewTokens: 2, seed: 0 });
    expect(completions).toHaveLength(3);
  });

  it("ends by a signal, before it starts and while it runs", async () => {
    const abort = new AbortController();
    let text = "";
    for await (const piece of model.stream(hello, {
      seed: 1,
      maxNewTokens: 200,
      ignoreEos: true,
      signal: abort.signal,
    })) {
      text += piece;
      abort.abort();
    }
    expect(text.length).toBeLessThan(100);
    const completion = await model.generate(hello, { signal: AbortSignal.abort() });
    expect(completion).toMatchObject({ finishReason: "aborted", tokens: [], text: "" });
  });

  it("throws errors of the options to the reader", async () => {
    await expect(collect(hello, { topP: 3 })).rejects.toEqual(errorLike("INVALID_ARGUMENT", /topP/));
  });
});

describe("generate", () => {
  it("returns the same completion for the same seed, and decodes greedily without one", async () => {
    const draw = (options: GenerationOptions) => model.generate(hello, { maxNewTokens: 12, ...options });
    expect((await draw({ seed: 5 })).tokens).toEqual((await draw({ seed: 5 })).tokens);
    expect((await draw({ seed: 5 })).tokens).not.toEqual((await draw({ seed: 6 })).tokens);
    expect((await draw({})).tokens).toEqual((await draw({ temperature: 0, seed: 9 })).tokens);
  });

  it("ends before a stop string that spans tokens", async () => {
    const options = { maxNewTokens: 60, seed: 11, ignoreEos: true };
    const full = await model.generate(hello, options);
    const at = 7;
    for (const length of [1, 2, 3]) {
      const stop = full.text.slice(at, at + length);
      const { pieces, completion } = await collect(hello, { ...options, stop: ["never in it", stop] });
      expect(completion.text).toBe(full.text.slice(0, full.text.indexOf(stop)));
      expect(pieces.join("")).toBe(completion.text);
      expect(completion.finishReason).toBe("stop_string");
      expect(full.tokens.slice(0, completion.tokens.length)).toEqual(completion.tokens);
    }
  });

  it("ends at the model's end token and at stop tokens, and leaves out their text", async () => {
    const full = await model.generate(hello, { maxNewTokens: 200, seed: 2, temperature: 2, topK: 0, ignoreEos: true });
    const end = model.endTokenIds[0];
    expect(full.tokens).toContain(end);
    const ended = await model.generate(hello, { maxNewTokens: 200, seed: 2, temperature: 2, topK: 0 });
    expect(ended).toMatchObject({ finishReason: "stop", tokens: full.tokens.slice(0, full.tokens.indexOf(end) + 1) });
    const other = full.tokens[3];
    const stopped = await model.generate(hello, {
      maxNewTokens: 200,
      seed: 2,
      temperature: 2,
      topK: 0,
      stopTokenIds: [other],
    });
    const count = full.tokens.indexOf(other);
    expect(stopped.tokens).toEqual(full.tokens.slice(0, count + 1));
    expect(stopped.text).toBe(model.tokenizer.decode(full.tokens.slice(0, count), { skipSpecialTokens: true }));
  });

  it("continues a text, with the tokens of the text as prompt", async () => {
    const text = "The quick brown";
    const completion = await model.generate(text, { maxNewTokens: 5 });
    expect(completion.promptTokens).toEqual(model.tokenizer.encode(text));
    expect((await model.generate(completion.promptTokens, { maxNewTokens: 5 })).tokens).toEqual(completion.tokens);
    expect(text + completion.text).toBe(model.tokenizer.decode([...completion.promptTokens, ...completion.tokens]));
  });

  it.each([
    ["", "INVALID_ARGUMENT", /prompt is empty/],
    [[], "INVALID_ARGUMENT", /prompt is empty/],
    [[5, 320], "INVALID_ARGUMENT", /320 is not a token of this model; token ids are integers from 0 to 319/],
    [[1.5], "INVALID_ARGUMENT", /1.5 is not a token/],
    [
      { role: "user", content: "hi" },
      "INVALID_ARGUMENT",
      /A prompt must be a string, a list of messages or a list of token ids/,
    ],
    [null, "INVALID_ARGUMENT", /got null/],
    [[{ content: "hi" }], "INVALID_ARGUMENT", /role/],
  ])("rejects the prompt %j", async (input, code, message) => {
    await expect(model.generate(input as PromptInput)).rejects.toEqual(errorLike(code, message));
  });
});

describe("generateBatch", () => {
  it("returns for each prompt the completion of its seed", async () => {
    const prompts = ["One two", "One two three", hello, [4, 5, 6]];
    const batch = await model.generateBatch(prompts, { seed: 20, maxNewTokens: 9 });
    const given = await model.generateBatch(prompts, { seeds: [23, 22, 21, 20], maxNewTokens: 9 });
    for (const [i, prompt] of prompts.entries()) {
      expect(batch[i].tokens).toEqual((await model.generate(prompt, { seed: 20 + i, maxNewTokens: 9 })).tokens);
      expect(given[i].tokens).toEqual((await model.generate(prompt, { seed: 23 - i, maxNewTokens: 9 })).tokens);
    }
    await expect(model.generateBatch(prompts, { seeds: [1] })).rejects.toEqual(
      errorLike("INVALID_ARGUMENT", /one entry per prompt \(4\), got 1/),
    );
  });
});

describe("a prompt that is too long", () => {
  const long = Array.from({ length: 300 }, (_, i) => 3 + (i % 300));
  const chat: ChatMessage[] = [
    { role: "system", content: "Be brief" },
    ...Array.from({ length: 12 }, (_, i) => ({
      role: i % 2 === 0 ? "user" : "assistant",
      content: `message ${i} `.repeat(4),
    })),
    { role: "user", content: "last one" },
  ];

  it("is rejected with the numbers of tokens", async () => {
    await expect(model.generate(long, { maxNewTokens: 9 })).rejects.toEqual(
      errorLike(
        "CONTEXT_OVERFLOW",
        /prompt's 300 tokens and 9 new ones exceed the model's context of 256 tokens.*drop-oldest/,
      ),
    );
    await expect(model.generate([5], { maxNewTokens: 256 })).rejects.toEqual(
      errorLike("CONTEXT_OVERFLOW", /256 new tokens/),
    );
    await expect(model.score(long, [[1]])).rejects.toEqual(errorLike("CONTEXT_OVERFLOW", /300 tokens and 1 new/));
    await expect(model.generate(chat)).rejects.toEqual(errorLike("CONTEXT_OVERFLOW", /context of 256/));
  });

  it("shortens a completion without a requested length", async () => {
    const completion = await model.generate(long.slice(0, 250), { ignoreEos: true, seed: 1 });
    expect(completion.tokens).toHaveLength(6);
  });

  it("loses its oldest tokens with drop-oldest", async () => {
    const completion = await model.generate(long, { maxNewTokens: 9, contextOverflow: "drop-oldest" });
    expect(completion.promptTokens).toEqual(long.slice(300 - 247));
  });

  it("loses its oldest messages but not the system's with drop-oldest", async () => {
    const completion = await model.generate(chat, { maxNewTokens: 20, contextOverflow: "drop-oldest" });
    const text = model.tokenizer.decode(completion.promptTokens);
    expect(completion.promptTokens.length).toBeLessThanOrEqual(236);
    expect(text).toMatch(/^<\|im_start\|>system\nBe brief<\|im_end\|>\n<\|im_start\|>user\nmessage (\d+)/);
    expect(text).toMatch(/last one<\|im_end\|>\n<\|im_start\|>assistant\n$/);
    const first = Number(/message (\d+)/.exec(text)![1]);
    const kept = (start: number) =>
      model.tokenizer.encodeChat([chat[0], ...chat.slice(start)], { addGenerationPrompt: true }).ids;
    expect(completion.promptTokens).toEqual(kept(first + 1));
    expect(kept(first - 1).length).toBeGreaterThan(236);
  });

  it("is rejected if its last message alone is too long", async () => {
    const messages = [...hello, { role: "user", content: "many words ".repeat(200) }];
    await expect(model.generate(messages, { maxNewTokens: 5, contextOverflow: "drop-oldest" })).rejects.toEqual(
      errorLike("CONTEXT_OVERFLOW", /last message alone is too long/),
    );
  });
});

describe("score", () => {
  it("sums the log-probabilities of a continuation's tokens", async () => {
    const continuations = [" fox", " fox jumps", [7, 8, 9]];
    const scores = await model.score("The quick brown", continuations);
    for (const { logProb, tokenLogProbs, tokens } of scores) {
      expect(tokenLogProbs).toHaveLength(tokens.length);
      expect(logProb).toBeCloseTo(
        tokenLogProbs.reduce((sum, value) => sum + value, 0),
        10,
      );
    }
    expect(scores[2].tokens).toEqual([7, 8, 9]);
    const greedy = await model.generate("The quick brown", { maxNewTokens: 3, ignoreEos: true });
    const [same] = await model.score("The quick brown", [greedy.tokens]);
    same.tokenLogProbs.forEach((value, i) => expect(value).toBeCloseTo(greedy.rawLogProbs[i], 4));
    await expect(model.score("The", [""])).rejects.toEqual(errorLike("INVALID_ARGUMENT", /Continuation 0 is empty/));
    expect(await model.score("The", [])).toEqual([]);
  });
});
