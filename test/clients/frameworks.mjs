// Clients of agent frameworks against a server of the embedded model at LLAMAGYM_TEST_URL, for Node
// 24: some need it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { Agent as MastraAgent } from "@mastra/core/agent";
import * as agents from "@openai/agents";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import * as z from "zod";
import {
  baseURL,
  apiKey,
  model,
  QUESTION,
  Move,
  Long,
  parameters,
  isMove,
  isBet,
  collect,
  leave,
} from "./requests.mjs";

describe("ai with @ai-sdk/openai-compatible", () => {
  const provider = createOpenAICompatible({ name: "llamagym", baseURL, apiKey, supportsStructuredOutputs: true });
  const base = { model: provider(model), prompt: QUESTION, maxRetries: 0 };
  const bet = tool({
    description: "Places a bet.",
    inputSchema: jsonSchema(parameters),
    execute: ({ amount }) => amount,
  });

  it("chats and streams", async () => {
    const { text, usage } = await generateText({ ...base, temperature: 0 });
    const stream = streamText({ ...base, temperature: 0 });
    assert.equal((await collect(stream.textStream)).join(""), text);
    assert.ok(usage.outputTokens > 0);
  });

  it("calls tools in several steps", async () => {
    const prepareStep = ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" });
    const { steps } = await generateText({
      ...base,
      tools: { bet },
      prepareStep,
      stopWhen: stepCountIs(2),
      maxOutputTokens: 60,
    });
    assert.equal(steps.length, 2);
    isBet(steps[0].toolCalls[0].input);
    const stream = streamText({ ...base, tools: { bet }, toolChoice: "required" });
    isBet((await stream.toolCalls)[0].input);
  });

  it("generates objects", async () => {
    isMove((await generateText({ ...base, output: Output.object({ schema: Move }) })).output);
  });

  it("throws its own errors and cancels", async () => {
    await assert.rejects(generateText({ ...base, model: provider("gpt-4") }), { statusCode: 404 });
    await leave(streamText({ ...base, maxOutputTokens: 1500, temperature: 2 }).textStream);
    const abortSignal = AbortSignal.timeout(100);
    await assert.rejects(generateText({ ...base, output: Output.object({ schema: Long }), abortSignal }));
  });
});

describe("@langchain/openai", () => {
  const create = (fields) =>
    new ChatOpenAI({ model, apiKey, configuration: { baseURL }, maxRetries: 0, maxTokens: 60, ...fields });

  it("chats and streams", async () => {
    const chat = create({ temperature: 0 });
    const { content } = await chat.invoke([new HumanMessage(QUESTION)]);
    const pieces = await collect(await chat.stream(QUESTION));
    assert.equal(pieces.map((piece) => piece.content).join(""), content);
  });

  it("calls tools", async () => {
    const bet = { type: "function", function: { name: "bet", description: "Places a bet.", parameters } };
    const { tool_calls: calls } = await create().bindTools([bet], { tool_choice: "any" }).invoke(QUESTION);
    isBet(calls[0].args);
  });

  it("parses structured output", async () => {
    for (const method of ["jsonSchema", "functionCalling"])
      isMove(await create().withStructuredOutput(Move, { name: "move", method }).invoke(QUESTION));
  });

  it("throws errors and cancels", async () => {
    await assert.rejects(create({ model: "gpt-4o" }).invoke(QUESTION), /There is no model/);
    await leave(await create({ maxTokens: 1500, temperature: 2 }).stream(QUESTION));
  });
});

describe("@openai/agents", () => {
  agents.setTracingDisabled(true);
  agents.setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey, maxRetries: 0 }));
  const bets = [];
  const bet = agents.tool({
    name: "bet",
    description: "Places a bet.",
    parameters: z.object({ amount: z.union([z.literal(1), z.literal(5)]) }),
    execute: (input) => bets.push(input),
  });
  const create = (fields) => new agents.Agent({ name: "player", instructions: "Play.", model, ...fields });

  for (const api of ["chat_completions", "responses"]) {
    it(`runs an agent with a tool over ${api}`, async () => {
      agents.setOpenAIAPI(api);
      const modelSettings = { toolChoice: "required", maxTokens: 60, temperature: 0 };
      const result = await agents.run(create({ tools: [bet], modelSettings }), QUESTION, { maxTurns: 3 });
      isBet(bets.at(-1));
      assert.equal(typeof result.finalOutput, "string");
    });

    it(`streams and parses structured output over ${api}`, async () => {
      agents.setOpenAIAPI(api);
      isMove((await agents.run(create({ outputType: Move }), QUESTION)).finalOutput);
      const stream = await agents.run(create({ modelSettings: { maxTokens: 20 } }), QUESTION, { stream: true });
      await collect(stream.toTextStream());
      await stream.completed;
    });

    it(`throws errors and cancels over ${api}`, async () => {
      agents.setOpenAIAPI(api);
      await assert.rejects(agents.run(create({ model: "gpt-4" }), QUESTION), { status: 404 });
      const signal = AbortSignal.timeout(100);
      await assert.rejects(agents.run(create({ outputType: Long }), QUESTION, { signal }));
    });
  }
});

describe("@mastra/core", () => {
  const create = (fields = {}) =>
    new MastraAgent({
      id: "player",
      name: "player",
      instructions: "Play.",
      model: { id: `llamagym/${model}`, url: baseURL, apiKey },
      maxRetries: 0,
      ...fields,
    });
  const modelSettings = { maxOutputTokens: 60, temperature: 0 };

  it("chats and streams", async () => {
    const { text } = await create().generate(QUESTION, { modelSettings });
    const stream = await create().stream(QUESTION, { modelSettings });
    assert.equal((await collect(stream.textStream)).join(""), text);
  });

  it("calls tools", async () => {
    const bet = {
      id: "bet",
      description: "Places a bet.",
      inputSchema: z.object({ amount: z.union([z.literal(1), z.literal(5)]) }),
    };
    const { toolCalls } = await create({ tools: { bet } }).generate(QUESTION, {
      toolChoice: "required",
      maxSteps: 1,
      modelSettings,
    });
    isBet(toolCalls[0].payload.args);
  });

  it("parses structured output", async () => {
    isMove((await create().generate(QUESTION, { structuredOutput: { schema: Move }, modelSettings })).object);
  });

  it("throws errors and cancels", async () => {
    const other = create({ model: { id: "llamagym/gpt-4", url: baseURL, apiKey } });
    await assert.rejects(other.generate(QUESTION, { modelSettings: { maxRetries: 0 } }));
    await leave(
      (await create().stream(QUESTION, { modelSettings: { maxOutputTokens: 1500, temperature: 2 } })).textStream,
    );
  });
});
