// Real clients against a server of the embedded model at LLAMAGYM_TEST_URL, for Node 24: some clients need it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { Agent as MastraAgent } from "@mastra/core/agent";
import * as agents from "@openai/agents";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import * as z from "zod";

const baseURL = `${process.env.LLAMAGYM_TEST_URL}/v1`;
const [apiKey, model] = ["none", "embedded"];
const QUESTION = "Your current total is 14. hit or stay?";
const messages = [{ role: "user", content: QUESTION }];
const Move = z.object({ move: z.enum(["hit", "stay"]) });
/** Takes many tokens, so that a request for it can be cancelled. */
const Long = z.object({ moves: z.array(z.enum(["hit", "stay"])).length(150) });
const parameters = { type: "object", properties: { amount: { type: "integer", enum: [1, 5] } }, required: ["amount"] };
const isMove = (value) => assert.ok(Move.safeParse(value).success, JSON.stringify(value));
const isBet = (value) => assert.ok([1, 5].includes(value.amount), JSON.stringify(value));

async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** Leaves a stream after its first piece; the server must end the completion. */
async function leave(stream) {
  for await (const _ of stream) break;
}

describe("openai", () => {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const tools = [{ type: "function", function: { name: "bet", parameters } }];

  it("chats", async () => {
    const { choices, usage } = await client.chat.completions.create({ model, messages, n: 2, seed: 1, logprobs: true });
    assert.equal(choices.length, 2);
    assert.equal(usage.completion_tokens, choices[0].logprobs.content.length + choices[1].logprobs.content.length);
  });

  it("streams what it returns without streaming", async () => {
    const request = { model, messages, seed: 7, max_tokens: 20, temperature: 1 };
    const whole = await client.chat.completions.create(request);
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const pieces = await collect(stream);
    assert.equal(await stream.finalContent(), whole.choices[0].message.content);
    assert.equal(pieces.at(-1).usage.total_tokens, whole.usage.total_tokens);
  });

  it("calls tools, streaming or not, and sends their results", async () => {
    const request = { model, messages, tools, tool_choice: "required", seed: 1 };
    const { message, finish_reason } = (await client.chat.completions.create(request)).choices[0];
    assert.equal(finish_reason, "tool_calls");
    isBet(JSON.parse(message.tool_calls[0].function.arguments));
    const streamed = await client.chat.completions.stream(request).finalMessage();
    assert.equal(streamed.tool_calls[0].function.arguments, message.tool_calls[0].function.arguments);
    const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "won" };
    await client.chat.completions.create({ model, messages: [...messages, message, result], tools, max_tokens: 5 });
  });

  it("parses structured output", async () => {
    const request = { model, messages, response_format: zodResponseFormat(Move, "move") };
    isMove((await client.chat.completions.parse(request)).choices[0].message.parsed);
    const { choices } = await client.chat.completions.create({
      model,
      messages,
      response_format: { type: "json_object" },
      temperature: 0,
      max_tokens: 100,
    });
    assert.equal(typeof JSON.parse(choices[0].message.content), "object");
  });

  it("uses the Responses API", async () => {
    const response = await client.responses.create({ model, input: QUESTION, max_output_tokens: 10 });
    assert.equal(typeof response.output_text, "string");
    const stream = client.responses.stream({
      model,
      input: QUESTION,
      instructions: "Be brief.",
      max_output_tokens: 10,
    });
    await collect(stream);
    assert.ok(["completed", "incomplete"].includes((await stream.finalResponse()).status));
    const parsed = await client.responses.parse({
      model,
      input: QUESTION,
      text: { format: zodTextFormat(Move, "move") },
    });
    isMove(parsed.output_parsed);
    const bet = { type: "function", name: "bet", parameters, strict: true };
    const called = await client.responses.create({ model, input: QUESTION, tools: [bet], tool_choice: "required" });
    isBet(JSON.parse(called.output[0].arguments));
    const output = { type: "function_call_output", call_id: called.output[0].call_id, output: "won" };
    const input = [{ role: "user", content: QUESTION }, ...called.output, output];
    await client.responses.create({ model, input, tools: [bet], max_output_tokens: 5 });
  });

  it("completes texts and lists models", async () => {
    const { choices } = await client.completions.create({ model, prompt: ["14 is", "20 is"], logprobs: 2, echo: true });
    assert.ok(choices[1].text.startsWith("20 is"));
    assert.equal((await client.models.list()).data[0].id, model);
    assert.equal((await client.models.retrieve(model)).id, model);
  });

  it("throws its own errors", async () => {
    const create = (fields) => client.chat.completions.create({ model, messages, ...fields });
    await assert.rejects(create({ model: "gpt-4" }), OpenAI.NotFoundError);
    await assert.rejects(create({ temperature: -1 }), { status: 400, param: "temperature" });
    await assert.rejects(client.embeddings.create({ model, input: "x" }), { status: 501 });
  });

  it("cancels", async () => {
    const request = { model, messages, response_format: zodResponseFormat(Long, "long") };
    await leave(await client.chat.completions.create({ ...request, stream: true }));
    const signal = AbortSignal.timeout(50);
    await assert.rejects(client.chat.completions.create(request, { signal }), OpenAI.APIUserAbortError);
  });
});

describe("@anthropic-ai/sdk", () => {
  const client = new Anthropic({ baseURL: process.env.LLAMAGYM_TEST_URL, apiKey, maxRetries: 0 });
  const request = { model, messages, max_tokens: 60 };
  const tools = [{ name: "bet", description: "Places a bet.", input_schema: parameters }];

  it("chats and streams", async () => {
    const message = await client.messages.create({ ...request, system: "Play well.", temperature: 0 });
    const stream = client.messages.stream({ ...request, system: "Play well.", temperature: 0 });
    await collect(stream);
    const final = await stream.finalMessage();
    assert.deepEqual(
      final.content.map(({ text }) => text),
      message.content.map(({ text }) => text),
    );
    assert.equal(final.usage.output_tokens, message.usage.output_tokens);
  });

  it("calls tools, streaming or not, and sends their results", async () => {
    const calling = { ...request, tools, tool_choice: { type: "any" } };
    const message = await client.messages.create(calling);
    assert.equal(message.stop_reason, "tool_use");
    isBet(message.content[0].input);
    isBet((await client.messages.stream(calling).finalMessage()).content[0].input);
    const result = { type: "tool_result", tool_use_id: message.content[0].id, content: "won" };
    const turns = [...messages, { role: "assistant", content: message.content }, { role: "user", content: [result] }];
    await client.messages.create({ ...request, messages: turns, tools, max_tokens: 5 });
  });

  it("parses structured output", async () => {
    const schema = { ...z.toJSONSchema(Move), $schema: undefined };
    const { content } = await client.messages.create({
      ...request,
      output_config: { format: { type: "json_schema", schema } },
    });
    isMove(JSON.parse(content[0].text));
  });

  it("throws its own errors and cancels", async () => {
    await assert.rejects(client.messages.create({ ...request, model: "claude" }), Anthropic.NotFoundError);
    await assert.rejects(client.messages.create({ ...request, max_tokens: 0 }), Anthropic.BadRequestError);
    await leave(client.messages.stream({ ...request, max_tokens: 1500, temperature: 1 }));
  });
});

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
