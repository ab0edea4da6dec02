// The AI SDK over llamagym/ai-sdk, in this process.
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import * as z from "zod";
import { AutoModelForCausalLM } from "../../dist/index.js";
import { toAiSdkModel } from "../../dist/ai-sdk.js";

const languageModel = await AutoModelForCausalLM.fromPretrained("embedded");
const base = { model: toAiSdkModel(languageModel), prompt: "Your current total is 14. hit or stay?", maxRetries: 0 };
const Move = z.object({ move: z.enum(["hit", "stay"]) });
const bet = tool({
  description: "Places a bet.",
  inputSchema: jsonSchema({ type: "object", properties: { amount: { enum: [1, 5] } }, required: ["amount"] }),
  execute: ({ amount }) => `bet ${amount}`,
});

describe("llamagym/ai-sdk", () => {
  after(() => languageModel.close());

  it("generates and streams the same text for a seed", async () => {
    const { text, usage } = await generateText({ ...base, seed: 3, temperature: 1 });
    const stream = streamText({ ...base, seed: 3, temperature: 1 });
    let streamed = "";
    for await (const piece of stream.textStream) streamed += piece;
    assert.equal(streamed, text);
    assert.equal((await stream.usage).outputTokens, usage.outputTokens);
  });

  it("generates objects", async () => {
    const { output } = await generateText({ ...base, output: Output.object({ schema: Move }) });
    assert.ok(Move.safeParse(output).success);
  });

  it("calls tools in several steps", async () => {
    const prepareStep = ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" });
    const options = { ...base, tools: { bet }, prepareStep, stopWhen: stepCountIs(2), maxOutputTokens: 80 };
    const { steps } = await generateText(options);
    assert.equal(steps.length, 2);
    assert.match(steps[0].toolResults[0].output, /^bet [15]$/);
    const calls = await streamText({ ...base, tools: { bet }, toolChoice: "required" }).toolCalls;
    assert.ok([1, 5].includes(calls[0].input.amount));
  });

  it("rejects unsupported schemas and cancels", async () => {
    const broken = tool({
      inputSchema: jsonSchema({ type: "object", properties: { x: { type: "array", unevaluatedItems: false } } }),
    });
    await assert.rejects(generateText({ ...base, tools: { broken } }), { code: "INVALID_ARGUMENT" });
    await assert.rejects(generateText({ ...base, abortSignal: AbortSignal.timeout(1), maxOutputTokens: 1000 }));
    for await (const _ of streamText({ ...base, temperature: 1 }).textStream) break;
  });
});
