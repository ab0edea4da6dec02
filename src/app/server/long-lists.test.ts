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
  ["invalid tokens", "/completions", { prompt: repeat(-1, 1_000_000) }, /`prompt`: must be a list of token ids >= 0/],
  ["tokens", "/completions", { prompt: repeat(1, 1_000_000) }, /1000000 tokens/],
])("refuses too many %s with one short error", async (_, path, body, expected) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  expect(response.status).toBe(400);
  expect(text).toMatch(expected);
  expect(text.length).toBeLessThan(500);
});
