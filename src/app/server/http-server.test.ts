import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM, getPeftModel } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

const MESSAGES = [{ role: "user", content: "Your current total is 14. hit or stay?" }];
const CHAT = { model: "embedded", messages: MESSAGES, max_tokens: 4, seed: 1 };
/** Any JSON; the tests check its fields. */
type Json = Readonly<Record<string, never>>;

let model: LanguageModel;
let server: RunningServer;

async function start(options: Partial<Parameters<typeof startHttpServer>[0]> = {}, timeoutMs?: number) {
  return startHttpServer({ port: 0, ...options }, (app, metrics) =>
    serveModels(app, [new ModelChatEngine(model, "embedded")], { metrics, timeoutMs }),
  );
}

async function post(path: string, body: unknown, { url } = server, init: RequestInit = {}) {
  const headers = { "content-type": "application/json" };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${url}/v1${path}`, { method: "POST", headers, body: text, ...init });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
}

/** Waits until no request is running. */
async function waitForIdle({ metrics } = server): Promise<void> {
  while (metrics.running > 0) await new Promise((done) => setTimeout(done, 10));
}

/**
 * Waits until a request starts. Looking now and then would miss one that is answered in between.
 */
async function nextStart({ metrics }: typeof server): Promise<void> {
  let { running } = metrics;
  return new Promise((resolve) => {
    const set = (value: number) => {
      if (value > running) resolve();
      running = value;
    };
    Object.defineProperty(metrics, "running", { get: () => running, set });
  });
}

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  server = await start();
});

afterAll(async () => {
  await server.close();
  await model.close();
});

describe("a server of models", () => {
  it("answers 1,000 requests at once, each as if it were alone", async () => {
    const requests = Array.from({ length: 1000 }, (_, seed) =>
      post("/chat/completions", { ...CHAT, max_tokens: 1, seed: seed % 10 }),
    );
    const responses = await Promise.all(requests);
    expect(responses.every(({ status }) => status === 200)).toBe(true);
    const texts = responses.map(({ body }) => JSON.stringify(body.choices));
    for (let seed = 0; seed < 10; seed++) {
      const alone = await post("/chat/completions", { ...CHAT, max_tokens: 1, seed });
      const same = texts.filter((_, i) => i % 10 === seed);
      expect(new Set(same)).toEqual(new Set([JSON.stringify(alone.body.choices)]));
    }
  });

  it("refuses requests beyond its limit and answers again afterwards", async () => {
    const small = await start({ maxRequests: 2 });
    const long = { ...CHAT, max_tokens: 200, stop: ["\u0001"], temperature: 2 };
    const responses = await Promise.all(Array.from({ length: 20 }, () => post("/chat/completions", long, small)));
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0].headers.get("retry-after")).toBe("1");
    expect(refused[0].body).toMatchObject({ error: { type: "rate_limit_error", code: "too_many_requests" } });
    await waitForIdle(small);
    expect((await post("/chat/completions", CHAT, small)).status).toBe(200);
    await small.close();
  });

  it.each([
    ["text that is not JSON", "{", { code: "invalid_json" }],
    ["a list", "[]", { param: "body" }],
    ["JSON of many levels", "[".repeat(2000) + "]".repeat(2000), { code: "invalid_json" }],
    ["an unknown field", { ...CHAT, temprature: 1 }, { code: "unknown_parameter", param: "temprature" }],
    ["no messages", { ...CHAT, messages: [] }, { param: "messages" }],
    ["a message without a role", { ...CHAT, messages: [{ content: "" }] }, { param: "messages[0].role" }],
    ["a number out of range", { ...CHAT, temperature: 3 }, { param: "temperature" }],
    ["NaN as text", { ...CHAT, temperature: "NaN" }, { param: "temperature" }],
    [
      "an image",
      {
        ...CHAT,
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "file:///etc/passwd" } }] }],
      },
      { param: "messages[0].content[0].type" },
    ],
    [
      "a prompt beyond the context",
      { ...CHAT, messages: [{ role: "user", content: "hit ".repeat(5000) }] },
      { code: "context_length_exceeded" },
    ],
    [
      "an unsupported schema",
      { ...CHAT, response_format: { type: "json_schema", json_schema: { name: "x", schema: { not: {} } } } },
      { code: "invalid_argument" },
    ],
    ["a tool choice without tools", { ...CHAT, tool_choice: "required" }, { code: "invalid_argument" }],
    ["a tool without a function", { ...CHAT, tools: [{ type: "function" }] }, { param: "tools[0].function" }],
    ["too many choices", { ...CHAT, n: 1000 }, { param: "n" }],
  ])("rejects %s in OpenAI's shape", async (_, body, error) => {
    const response = await post("/chat/completions", body);
    expect(response).toMatchObject({ status: 400, body: { error: { type: "invalid_request_error", ...error } } });
  });

  it("serves adapters by name as well as their base model", async () => {
    const adapted = await getPeftModel(model, { r: 2, targetModules: "all-linear" });
    const engines = [new ModelChatEngine(model, "base"), new ModelChatEngine(adapted, "tuned")];
    const both = await startHttpServer({ port: 0 }, (app) => serveModels(app, engines, {}));
    const names = ["base", "tuned", undefined];
    const responses = await Promise.all(
      [...names, ...names].map((name) => post("/chat/completions", { ...CHAT, model: name }, both)),
    );
    expect(responses.map(({ body }) => body.model)).toEqual(["base", "tuned", "base", "base", "tuned", "base"]);
    // A new adapter changes nothing.
    expect(new Set(responses.map(({ body }) => JSON.stringify(body.choices))).size).toBe(1);
    expect(await (await fetch(`${both.url}/v1/models`)).json()).toMatchObject({
      data: [{ id: "base" }, { id: "tuned" }],
    });
    await both.close();
  });

  it("rejects an unknown model, an unknown route and embeddings", async () => {
    expect(await post("/chat/completions", { ...CHAT, model: "gpt-4" })).toMatchObject({
      status: 404,
      body: { error: { code: "model_not_found" } },
    });
    expect(await post("/images", CHAT)).toMatchObject({ status: 404, body: { error: { type: "not_found_error" } } });
    const unversioned = await fetch(server.url.replace(/\/v1$/u, "").concat("/chat/completions"), { method: "POST" });
    expect(await unversioned.json()).toMatchObject({
      error: { message: "There is no POST /chat/completions. Did you mean POST /v1/chat/completions?" },
    });
    expect(await post("/embeddings", { model: "embedded", input: "x" })).toMatchObject({ status: 501 });
  });

  it("rejects bodies of other types and of more than 8 MiB", async () => {
    const text = await post("/chat/completions", CHAT, server, { headers: { "content-type": "text/plain" } });
    expect(text.status).toBe(415);
    const response = await post("/chat/completions", { ...CHAT, user: "x".repeat(9 * 2 ** 20) });
    expect(response.status).toBe(413);
  });

  it("shows errors of Anthropic's API in its shape", async () => {
    const response = await post("/messages", { model: "embedded", messages: MESSAGES });
    expect(response).toMatchObject({ status: 400, body: { type: "error", error: { type: "invalid_request_error" } } });
  });

  it("ends requests that take too long", async () => {
    const impatient = await start({}, 1);
    const request = { ...CHAT, max_tokens: 500, temperature: 2 };
    expect(await post("/chat/completions", request, impatient)).toMatchObject({ status: 504 });
    await impatient.close();
  });

  it("stops sampling for clients that leave or stop reading, and answers others", async () => {
    const { hostname, port } = new URL(server.url);
    // The schema keeps completions from ending early.
    const schema = { type: "array", items: { enum: ["hit", "stay"] }, minItems: 250 };
    const format = { type: "json_schema", json_schema: { name: "long", schema } };
    const body = JSON.stringify({ ...CHAT, max_tokens: 1500, stream: true, n: 8, response_format: format });
    const sockets = Array.from({ length: 4 }, () => {
      const socket = connect(Number(port), hostname);
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      return socket.pause();
    });
    await expect.poll(() => server.metrics.running, { timeout: 30_000 }).toBe(4);
    expect((await post("/chat/completions", CHAT)).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await waitForIdle();
    expect((await post("/chat/completions", CHAT)).status).toBe(200);
  });

  it("asks for its API key, and listens for other machines only with one", async () => {
    await expect(start({ host: "0.0.0.0" })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    // Clients that send no key would have an empty one.
    await expect(start({ host: "0.0.0.0", apiKey: "" })).rejects.toThrow("`apiKey` must be a non-empty string");
    // Clients cannot send a line break.
    await expect(start({ apiKey: "secret\n" })).rejects.toThrow("The key in `apiKey` contains a line break");
    await expect(start({ port: 70_000 })).rejects.toThrow("`port` must be an integer >= 0 and <= 65535, got 70000.");
    await expect(start({ maxRequests: 0 })).rejects.toThrow("`maxRequests` must be an integer >= 1, got 0.");
    const secured = await start({ apiKey: "secret" });
    const wrong = { headers: { "content-type": "application/json", authorization: "Bearer wrong" } };
    expect(await post("/chat/completions", CHAT, secured)).toMatchObject({ status: 401 });
    expect(await post("/chat/completions", CHAT, secured, wrong)).toMatchObject({
      status: 401,
      body: { error: { code: "invalid_api_key" } },
    });
    const right = { headers: { "content-type": "application/json", "x-api-key": "secret" } };
    expect(await post("/chat/completions", CHAT, secured, right)).toMatchObject({ status: 200 });
    expect((await fetch(`${secured.url}/metrics`)).status).toBe(401);
    expect((await fetch(`${secured.url}/health`)).status).toBe(200);
    await secured.close();
  });

  it("counts requests and tokens for Prometheus", async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).toMatch(/llamagym_requests_total\{route="\/v1\/chat\/completions",status="200"\} \d{4}/);
    expect(text).toMatch(/llamagym_completion_tokens_total [1-9]\d+/);
  });

  it("waits for running requests before it closes", async () => {
    const closing = await start();
    const hasStarted = nextStart(closing);
    const running = post("/chat/completions", { ...CHAT, max_tokens: 50 }, closing);
    await hasStarted;
    await closing.close();
    expect((await running).status).toBe(200);
    await expect(post("/chat/completions", CHAT, closing)).rejects.toThrow("fetch failed");
  });
});
