import { ServerResponse } from "node:http";
import { queryObjects } from "node:v8";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openTrainable } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { ppo } from "../../rl/algorithms/index.js";
import { createGateway } from "../gateway/gateway-trainer.js";
import { startHttpServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

/** Requests of each kind. */
const ROUNDS = 8;
/** A connection that is kept alive keeps its last response. */
const MAX_KEPT = 4;

const MOVES = ["hit", "stay"];
const schema = { type: "object", properties: { move: { enum: MOVES } }, required: ["move"] };
const tools = MOVES.map((name) => ({ type: "function", function: { name, parameters: { type: "object" } } }));

/** Chat requests of each kind, by a name. */
const CHATS: Readonly<Record<string, object>> = {
  plain: {},
  "several choices": { n: 2, logprobs: true },
  streamed: { stream: true },
  schema: { max_tokens: 64, response_format: { type: "json_schema", json_schema: { name: "move", schema } } },
  "tool call": { max_tokens: 64, tools, tool_choice: "required" },
  refused: { max_tokens: -1 },
  aborted: { stream: true, max_tokens: 500 },
};

let model: LanguageModel;

beforeAll(async () => {
  model = await openTrainable("embedded", { peftConfig: { r: 2, seed: 1 }, valueHead: { kind: "linear" } });
});
afterAll(async () => model.close());

async function post(url: string, body: object, signal?: AbortSignal): Promise<string> {
  const headers = { "content-type": "application/json" };
  return (await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal })).text();
}

/** Sends chats of all kinds with messages that do not recur. */
async function chat(url: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round++)
    for (const [kind, options] of Object.entries(CHATS)) {
      const messages = [{ role: "user", content: `Round ${round}, ${kind}. hit or stay?` }];
      const signal = kind === "aborted" ? AbortSignal.timeout(20) : undefined;
      const body = { model: "m", max_tokens: 4, messages, ...options };
      const sent = post(`${url}/chat/completions`, body, signal);
      await (kind === "aborted" ? sent.catch(() => {}) : sent);
    }
}

/** Responses in memory, after those that nothing refers to were collected. */
function countResponses(): number {
  return queryObjects(ServerResponse, { format: "count" });
}

it("a server keeps no request in memory", async () => {
  const engine = new ModelChatEngine(model, "m");
  const server = await startHttpServer({ port: 0 }, (app) => serveModels(app, [engine], {}));
  const v1 = `${server.url}/v1`;
  await chat(v1);
  for (let round = 0; round < ROUNDS; round++) {
    const text = `Round ${round}. hit or stay?`;
    const messages = [{ role: "user", content: text }];
    await post(`${v1}/completions`, { model: "m", prompt: text, max_tokens: 4, echo: true, logprobs: 1 });
    await post(`${v1}/responses`, { model: "m", input: text, max_output_tokens: 16 });
    await post(`${v1}/messages`, { model: "m", messages, max_tokens: 4 });
    await post(`${v1}/score`, { model: "m", items: [{ prompt: text, candidates: MOVES }] });
    await post(`${v1}/messages/count_tokens`, { model: "m", messages });
  }
  await expect.poll(countResponses, { timeout: 10_000 }).toBeLessThanOrEqual(MAX_KEPT);
  await server.close();
});

it("a gateway keeps no request in memory", async () => {
  const algorithm = ppo({ batchSize: 64, miniBatchSize: 64, numPpoEpochs: 1 });
  const gateway = await createGateway({ model, port: 0, turns: 1e6, maxCompletionLength: 64, algorithm });
  const ending = new AbortController();
  const training = gateway.train({ signal: ending.signal });
  for (let session = 0; session < 2; session++) {
    const { id, baseURL } = JSON.parse(await post(`${gateway.url}/sessions`, {})) as { id: string; baseURL: string };
    await chat(baseURL);
    await post(`${gateway.url}/sessions/${id}/end`, { reward: 1 });
  }
  await expect.poll(countResponses, { timeout: 10_000 }).toBeLessThanOrEqual(MAX_KEPT);
  ending.abort();
  await training;
  await gateway.close();
});
