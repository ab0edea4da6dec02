import * as z from "zod";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

/**
 * The fields that Open Responses requires of a response and its items
 * (https://www.openresponses.org).
 */
const text = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.any()),
  logprobs: z.array(z.any()),
});
const status = z.enum(["in_progress", "completed", "incomplete"]);
const message = z.object({
  type: z.literal("message"),
  id: z.string(),
  status,
  role: z.literal("assistant"),
  content: z.array(text),
});
const call = z.object({
  type: z.literal("function_call"),
  id: z.string(),
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
  status,
});
const tool = z.object({
  type: z.literal("function"),
  name: z.string(),
  description: z.string().nullable(),
  parameters: z.record(z.string(), z.unknown()).nullable(),
  strict: z.boolean().nullable(),
});
const response = z.object({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.int(),
  completed_at: z.int().nullable(),
  status: z.string(),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: z.string().nullable(),
  instructions: z.string().nullable(),
  output: z.array(z.union([message, call])),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(tool),
  tool_choice: z.union([
    z.enum(["none", "auto", "required"]),
    z.object({ type: z.literal("function"), name: z.string() }),
  ]),
  truncation: z.enum(["auto", "disabled"]),
  parallel_tool_calls: z.boolean(),
  text: z.object({
    format: z.union([
      z.object({ type: z.enum(["text", "json_object"]) }),
      z.object({
        type: z.literal("json_schema"),
        name: z.string(),
        description: z.string().nullable(),
        schema: z.record(z.string(), z.unknown()).nullable(),
        strict: z.boolean(),
      }),
    ]),
  }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.int(),
  temperature: z.number(),
  reasoning: z.object({ effort: z.string().nullable(), summary: z.string().nullable() }).nullable(),
  user: z.string().nullable(),
  usage: z
    .object({
      input_tokens: z.int(),
      output_tokens: z.int(),
      total_tokens: z.int(),
      input_tokens_details: z.object({ cached_tokens: z.int() }),
      output_tokens_details: z.object({ reasoning_tokens: z.int() }),
    })
    .nullable(),
  max_output_tokens: z.int().nullable(),
  max_tool_calls: z.int().nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
});
const part = { sequence_number: z.int(), item_id: z.string(), output_index: z.int(), content_index: z.int() };
const item = { sequence_number: z.int(), output_index: z.int(), item: z.union([message, call]) };
const event = z.discriminatedUnion("type", [
  z.object({
    type: z.enum(["response.created", "response.in_progress", "response.completed", "response.incomplete"]),
    sequence_number: z.int(),
    response,
  }),
  z.object({ type: z.literal("response.output_item.added"), ...item }),
  z.object({ type: z.literal("response.output_item.done"), ...item }),
  z.object({ type: z.literal("response.content_part.added"), ...part, part: text }),
  z.object({ type: z.literal("response.content_part.done"), ...part, part: text }),
  z.object({ type: z.literal("response.output_text.delta"), ...part, delta: z.string(), logprobs: z.array(z.any()) }),
  z.object({ type: z.literal("response.output_text.done"), ...part, text: z.string(), logprobs: z.array(z.any()) }),
  z.object({
    type: z.literal("response.function_call_arguments.delta"),
    sequence_number: z.int(),
    item_id: z.string(),
    output_index: z.int(),
    delta: z.string(),
  }),
  z.object({
    type: z.literal("response.function_call_arguments.done"),
    sequence_number: z.int(),
    item_id: z.string(),
    output_index: z.int(),
    arguments: z.string(),
  }),
]);

const say = (role: string, content: string) => ({ type: "message", role, content });
const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Get the current weather for a location",
  parameters: {
    type: "object",
    properties: { location: { type: "string", maxLength: 20, description: "The city and state" } },
    required: ["location"],
  },
};

let model: LanguageModel;
let server: RunningServer;
beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  server = await startHttpServer({ port: 0 }, (app, metrics) =>
    serveModels(app, [new ModelChatEngine(model, "embedded")], { metrics }),
  );
});
afterAll(async () => {
  await server.close();
  await model.close();
});

async function send(body: object): Promise<string> {
  const headers = { "content-type": "application/json" };
  const request = { method: "POST", headers, body: JSON.stringify({ model: "embedded", seed: 1, ...body }) };
  const answer = await fetch(`${server.url}/v1/responses`, request);
  expect(answer.status).toBe(200);
  return answer.text();
}

/** The compliance cases of Open Responses for text. */
describe("Open Responses", () => {
  it.each([
    ["a basic response", [say("user", "Say hello in exactly 3 words.")]],
    ["a system prompt", [say("system", "You are a pirate."), say("user", "Say hello.")]],
    [
      "several turns",
      [say("user", "My name is Alice."), say("assistant", "Hello Alice!"), say("user", "What is my name?")],
    ],
  ])("has the required fields of %s", async (_, input) => {
    const answer = response.parse(JSON.parse(await send({ input })));
    expect(answer).toMatchObject({ status: "completed", output: [{ type: "message" }], temperature: 1, top_p: 1 });
    expect(answer.completed_at).toBeGreaterThanOrEqual(answer.created_at);
  });

  it("has the required fields of a tool call", async () => {
    const input = [say("user", "What's the weather like in San Francisco?")];
    const answer = response.parse(JSON.parse(await send({ input, tools: [WEATHER], tool_choice: "required" })));
    expect(answer.output).toMatchObject([{ type: "function_call", name: "get_weather" }]);
  });

  it.each([
    ["a text", {}, "response.output_text.delta"],
    [
      "a tool call",
      { tools: [WEATHER], tool_choice: { type: "function", name: "get_weather" } },
      "response.function_call_arguments.delta",
    ],
  ])("streams the events of %s in order", async (_, fields, delta) => {
    const stream = await send({ input: [say("user", "Count from 1 to 5.")], stream: true, ...fields });
    const events = Array.from(stream.matchAll(/^data: (.*)$/gm), ([, json]) => event.parse(JSON.parse(json)));
    expect(events.map((each) => each.sequence_number)).toEqual(events.map((_each, i) => i));
    const types = events.map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(["response.created", "response.in_progress", "response.output_item.added"]);
    expect(types).toContain(delta);
    expect(types.slice(-2)).toEqual(["response.output_item.done", "response.completed"]);
  });

  it("repeats what the request set", async () => {
    const fields = {
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 30,
      max_tool_calls: 2,
      reasoning: { effort: "low" },
      user: "u",
      safety_identifier: "s",
      prompt_cache_key: "k",
      metadata: { a: "b" },
      text: { format: { type: "json_schema", name: "n", schema: { enum: ["hit"] } }, verbosity: "low" },
    };
    const answer = JSON.parse(await send({ input: "hit?", ...fields })) as z.infer<typeof response>;
    expect(response.safeParse(answer).error?.issues ?? []).toEqual([]);
    expect(answer).toMatchObject(fields);
  });
});
