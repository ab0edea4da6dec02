// OpenAI's and Anthropic's clients against a server of the embedded model at LLAMAGYM_TEST_URL.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import * as z from "zod";
import {
  baseURL,
  apiKey,
  model,
  QUESTION,
  messages,
  Move,
  Long,
  parameters,
  isMove,
  isBet,
  collect,
  leave,
} from "./requests.mjs";

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
