import type { FunctionTool } from "../../rl/tools/index.js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import { CompletionCache } from "../../generation/sampling/completion-cache.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { ChatDelta } from "./chat-engine.js";
import { JSON_OBJECT_SCHEMA } from "./json-object-schema.js";
import { ModelChatEngine } from "./model-chat-engine.js";

const HIT: FunctionTool = { name: "hit", parameters: { type: "object", properties: {} } };
const BET: FunctionTool = {
  name: "bet",
  parameters: { type: "object", properties: { amount: { enum: [1, 5] } }, required: ["amount"] },
};
const QUESTION = [{ role: "user", content: "Your current total is 14. hit or stay?" }];

let model: LanguageModel;
let engine: ModelChatEngine;

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  engine = new ModelChatEngine(model, "embedded");
});

afterAll(async () => {
  await model.close();
});

describe("ModelChatEngine", () => {
  it("generates what the model generates", async () => {
    const { choices, promptTokens } = await engine.generate({ input: QUESTION, seed: 3, maxNewTokens: 8 });
    const completion = await model.generate(QUESTION, { seed: 3, temperature: 1, topK: 0, maxNewTokens: 8 });
    expect(choices[0]).toMatchObject({
      text: completion.text,
      tokens: completion.tokens,
      finishReason: "stop",
    });
    expect(promptTokens).toEqual(completion.promptTokens);
  });

  it.each([
    [{}, 1],
    [{ temperature: 0.5, do_sample: true }, 0.5],
    [{ temperature: 0.5, do_sample: false }, 0],
  ])("takes its temperature from generation_config.json: %o", (config, temperature) => {
    vi.spyOn(model.policy, "generationConfig", "get").mockReturnValueOnce(config);
    expect(engine.defaultSampling.temperature).toBe(temperature);
  });

  it("samples choice i with seed + i", async () => {
    const { choices } = await engine.generate({ input: QUESTION, seed: 3, n: 3, maxNewTokens: 8 });
    const { choices: single } = await engine.generate({ input: QUESTION, seed: 5, maxNewTokens: 8 });
    expect(choices[2].tokens).toEqual(single[0].tokens);
  });

  it("constrains a required tool call to the tools' schemas", async () => {
    const deltas: ChatDelta[] = [];
    const request = { input: QUESTION, tools: [HIT, BET], toolChoice: { name: "bet" }, seed: 1 };
    const { choices } = await engine.generate(request, (delta) => deltas.push(delta));
    const [{ toolCalls, tokens, logProbs, allowedTokens, finishReason }] = choices;
    expect(toolCalls).toMatchObject([
      { name: "bet", arguments: expect.stringMatching(/^\{"amount":[15]\}$/) as string },
    ]);
    expect(deltas).toEqual([{ index: 0, toolCall: toolCalls[0] }]);
    expect(finishReason).toBe("tool_calls");
    expect(model.tokenizer.decode(tokens)).toMatch(/^bet \{"amount": [15]\}<\|end\|>$/);
    tokens.forEach((token, i) => expect(allowedTokens[i]).toContain(token));
    expect(logProbs.filter((value) => value !== 0).length).toBeGreaterThan(0);
  });

  it("decides once in a call of tools without arguments, whose other tokens are forced", async () => {
    const tools = [HIT, { ...HIT, name: "stay" }];
    const { choices } = await engine.generate({ input: QUESTION, tools, toolChoice: "required", seed: 1 });
    const numAllowed = choices[0].allowedTokens.map((allowed) => allowed?.length);
    expect(numAllowed.filter((length) => length !== 1)).toEqual([2]);
  });

  it("samples the same tokens from cached distributions", async () => {
    const completionCache = new CompletionCache();
    for (const request of [{}, { tools: [HIT, BET], toolChoice: "required" }] as const) {
      const complete = async (cache?: CompletionCache) => {
        const options = { input: QUESTION, ...request, seed: 4, n: 4, maxNewTokens: 60, cache };
        const { choices } = await engine.generate(options);
        return choices.map(({ tokens, logProbs, allowedTokens }) => ({ tokens, logProbs, allowedTokens }));
      };
      const sampled = await complete();
      const first = await complete(completionCache);
      const run = vi.spyOn(engine.model.causalLM.runtime, "sequence");
      expect(await complete(completionCache)).toEqual(first);
      expect(run).not.toHaveBeenCalled();
      run.mockRestore();
      expect(first.map(({ tokens }) => tokens)).toEqual(sampled.map(({ tokens }) => tokens));
    }
  });

  it("continues given tokens exactly", async () => {
    const promptTokens = [...(await engine.renderPrompt({ input: QUESTION })), 7, 8, 9];
    const result = await engine.generate({ input: QUESTION, promptTokens, maxNewTokens: 2, seed: 1 });
    expect(result.promptTokens).toEqual(promptTokens);
  });

  it("reuses the keys and values of an earlier request", async () => {
    const input = [{ role: "user", content: "A prompt that no other test of this file has, with some words more." }];
    await engine.generate({ input, maxNewTokens: 1 });
    const { cachedPromptTokens, promptTokens } = await engine.generate({ input, maxNewTokens: 1 });
    expect(cachedPromptTokens).toBe(promptTokens.length - 1);
  });

  it("returns the most probable tokens", async () => {
    const request = { input: QUESTION, sampling: { temperature: 0 }, topLogProbs: 3, maxNewTokens: 3 };
    const [{ topLogProbs, tokens, rawLogProbs }] = (await engine.generate(request)).choices;
    tokens.forEach((token, i) => {
      expect(topLogProbs[i]).toHaveLength(3);
      expect(topLogProbs[i][0]).toEqual({ token, logProb: rawLogProbs[i] });
    });
  });

  it("rejects schemas that are not supported before sampling", async () => {
    const tool = { name: "search", parameters: { type: "object", properties: { query: { $dynamicRef: "#a" } } } };
    await expect(engine.generate({ input: QUESTION, tools: [tool] })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });

  it("lets other work run while it compiles a large schema", async () => {
    let turnsOfEventLoop = 0;
    let isCompiled = false;
    const count = () => {
      turnsOfEventLoop++;
      if (!isCompiled) setImmediate(count);
    };
    setImmediate(count);
    const properties = Object.fromEntries(
      Array.from({ length: 300 }, (_, i) => [`p${i}`, { type: "string", pattern: `^(a|bc){1,${i + 1}}$` }]),
    );
    const compiled = Promise.all([1, 2].map(() => model.preparePattern({ jsonSchema: { properties } })));
    expect((await engine.generate({ input: QUESTION, maxNewTokens: 1 })).choices[0].tokens).toHaveLength(1);
    await compiled;
    isCompiled = true;
    expect(turnsOfEventLoop).toBeGreaterThan(10);
    const { choices } = await engine.generate({ input: QUESTION, jsonSchema: JSON_OBJECT_SCHEMA, maxNewTokens: 40 });
    expect(JSON.parse(choices[0].text)).toBeTypeOf("object");
  });

  it("ends an aborted request", async () => {
    const signal = AbortSignal.abort();
    const { choices } = await engine.generate({ input: QUESTION, signal });
    expect(choices[0].finishReason).toBe("aborted");
  });
});

it("refuses a prompt that cannot fit before it is tokenized", async () => {
  const content = "<|end|> word".repeat(400_000);
  const { tokenizer } = model;
  const encode = vi.spyOn(tokenizer, "encodeContinuation");
  for (const input of [content, [{ role: "user", content }]])
    await expect(engine.generate({ input })).rejects.toMatchObject({
      code: "CONTEXT_OVERFLOW",
      message: expect.stringMatching(/^The prompt's at least \d+ tokens exceed/) as string,
    });
  expect(encode).not.toHaveBeenCalled();
  encode.mockRestore();
});
