import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

let model: LanguageModel;
let server: RunningServer;

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  const engine = new ModelChatEngine(model, "embedded");
  server = await startHttpServer({ port: 0 }, (app) => serveModels(app, [engine], {}));
});

afterAll(async () => {
  await server.close();
  await model.close();
});

/**
 * Sends the fields of a request with one of them as JSON text, because 1e999 is a number in JSON
 * alone.
 */
async function send(path: string, fields: object, name: string, value: string) {
  const others = JSON.stringify({ ...fields, [name]: undefined }).slice(1, -1);
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}/v1${path}`, {
    method: "POST",
    headers,
    body: `{${others},"${name}":${value}}`,
  });
  return { status: response.status, text: await response.text() };
}

const MESSAGES = [{ role: "user", content: "hit or stay?" }];
const APIS = [
  { path: "/chat/completions", fields: { messages: MESSAGES, max_tokens: 3 }, maxTokens: "max_tokens" },
  { path: "/chat/completions", fields: { messages: MESSAGES }, maxTokens: "max_completion_tokens" },
  { path: "/completions", fields: { prompt: "hit", max_tokens: 3 }, maxTokens: "max_tokens" },
  { path: "/responses", fields: { input: MESSAGES, max_output_tokens: 3 }, maxTokens: "max_output_tokens" },
  { path: "/messages", fields: { messages: MESSAGES, max_tokens: 3 }, maxTokens: "max_tokens" },
];
const BEYOND: Readonly<Record<string, readonly string[]>> = {
  temperature: ["5e-324", "1e-320", "1e-40", "9e-7", "2.5", "1e308", "1e999", "-1"],
  top_p: ["5e-324", "1e-40", "-1", "1.5", "1e308"],
  min_p: ["5e-324", "1e-40", "-0.1", "1e308"],
  top_k: ["1e308", "1e999", "0.5", "-2"],
  repetition_penalty: ["5e-324", "0", "1e-40", "1e30", "1e308"],
  presence_penalty: ["5e-324", "1e308"],
  frequency_penalty: ["5e-324", "1e308"],
  seed: ["1e308", "5e-324", "9007199254740993", "-2"],
  max_tokens: ["1e308", "5e-324", "1e999", "-1"],
  n: ["1e308", "5e-324", "0"],
  top_logprobs: ["1e308", "5e-324"],
};

describe.each(APIS)("$path ($maxTokens)", ({ path, fields, maxTokens }) => {
  it.each(Object.entries(BEYOND))("refuses %s beyond its limits, naming both", async (name, values) => {
    const field = name === "max_tokens" ? maxTokens : name;
    for (const value of values) {
      const { status, text } = await send(path, fields, field, value);
      expect({ value, status }).toEqual({ value, status: 400 });
      expect(text).toContain(field);
    }
  });

  it("samples finite log-probabilities at the limits", async () => {
    const limits = [
      ["temperature", "0.000001"],
      ["top_p", "0.000001"],
      ["top_p", "0"],
      ["top_k", "-1"],
      ["min_p", "0.000001"],
      ["repetition_penalty", "100"],
      ["seed", "-1"],
    ];
    for (const [name, value] of limits) {
      const { status, text } = await send(path, { ...fields, [maxTokens]: 3 }, name, value);
      // Anthropic's API has no min_p and no penalty.
      if (path === "/messages" && text.includes("Unknown field")) continue;
      expect({ name, status, text }).toMatchObject({ status: 200 });
    }
  });
});

describe("a library call", () => {
  it.each([
    { temperature: 5e-324 },
    { temperature: 1e308 },
    { topP: 5e-324 },
    { minP: 5e-324 },
    { repetitionPenalty: 5e-324 },
    { repetitionPenalty: 1e308 },
    { topK: 1e308 },
    { seed: 1e308 },
    { maxNewTokens: 1e308 },
  ])("refuses %j, naming the option and its limits", async (options) => {
    const [name] = Object.keys(options);
    await expect(model.generate("hit", options)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(new RegExp(`^\`${name}\` must be .*(number|integer) >= `)) as string,
    });
  });

  it.each([
    { temperature: 1e-6 },
    { temperature: 100 },
    { temperature: 1e-6, repetitionPenalty: 100 },
    { temperature: 1e-6, repetitionPenalty: 0.01, topP: 1e-6, minP: 1e-6 },
  ])("samples finite log-probabilities with %j", async (options) => {
    const { logProbs, rawLogProbs } = await model.generate("hit", { maxNewTokens: 8, seed: 1, ...options });
    expect([...logProbs, ...rawLogProbs].every(Number.isFinite)).toBe(true);
  });
});
