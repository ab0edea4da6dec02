import { afterAll, beforeAll, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

let model: LanguageModel;
let server: RunningServer;
beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  const chat = new ModelChatEngine(model, "embedded");
  server = await startHttpServer({ port: 0 }, (app) => serveModels(app, [chat], {}));
});
afterAll(async () => {
  await server.close();
  await model.close();
});

const repeat = <Item>(item: Item, count: number) => Array.from({ length: count }, () => item);
const message = { role: "user", content: "a" };
const numbers = (count: number) => JSON.stringify({ a: repeat(1, count) });
const call = (counts: readonly number[]) => ({
  role: "assistant",
  tool_calls: counts.map((count, i) => ({ id: `c${i}`, function: { name: "look", arguments: numbers(count) } })),
});
const responseCall = (count: number) => ({
  type: "function_call",
  call_id: "c",
  name: "look",
  arguments: numbers(count),
});
const numbered = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, 1]));
const part = { type: "text", text: "a" };

it.each<[string, string, object, RegExp]>([
  ["messages of a chat", "/chat/completions", { messages: repeat(message, 4097) }, /`messages`: Too big.*<=4096/],
  ["invalid messages", "/chat/completions", { messages: repeat({}, 60_000) }, /`messages`: Too big/],
  ["parts of a message", "/chat/completions", { messages: [{ role: "user", content: repeat(part, 4097) }] }, /content/],
  [
    "messages of Anthropic's API",
    "/messages",
    { max_tokens: 1, messages: repeat(message, 4097) },
    /`messages`: Too big/,
  ],
  ["items of a response", "/responses", { input: repeat(message, 4097) }, /`input`: Too big/],
  ["stop strings", "/completions", { prompt: "a", stop: repeat("", 60_000) }, /`stop`/],
  ["arrays, objects and strings", "/chat/completions", { messages: [], other: repeat({}, 70_000) }, /more than 65536/],
  ["prompts", "/completions", { prompt: repeat("a", 129) }, /`prompt`/],
  ["invalid tokens", "/completions", { prompt: repeat(-1, 250_000) }, /`prompt`: must be a list of token ids >= 0/],
  ["tokens", "/completions", { prompt: repeat(1, 250_000) }, /250000 tokens/],
  ["token ids of a request", "/completions", { prompt: repeat(1, 300_000) }, /more than 262144 values/],
  [
    "numbers of a chat",
    "/chat/completions",
    { messages: [message], user: repeat(1, 70_000) },
    /more than 65536 values/,
  ],
  [
    "numbers of arguments",
    "/chat/completions",
    { messages: repeat(call([70_000]), 1) },
    /earlier tool calls have more/,
  ],
  ["numbers of all arguments", "/chat/completions", { messages: repeat(call([9000, 9000]), 4) }, /earlier tool calls/],
  ["arguments of a response", "/responses", { input: repeat(responseCall(9000), 8) }, /earlier tool calls have more/],
  ["fields", "/chat/completions", { ...numbered(300), messages: [message] }, /has 30\d fields, more than 256/],
  [
    "biases",
    "/chat/completions",
    { messages: [message], logit_bias: numbered(30_000) },
    /`logit_bias`: is not supported/,
  ],
])("refuses too many %s with one short error", async (_, path, body, expected) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  expect(response.status).toBe(400);
  expect(text).toMatch(expected);
  expect(text.length).toBeLessThan(500);
});
