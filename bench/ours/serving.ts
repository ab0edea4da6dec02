import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { AutoModelForCausalLMWithValueHead } from "../../src/index.js";
import { startHttpServer } from "../../src/app/server/http-server.js";
import { ModelChatEngine } from "../../src/app/server/model-chat-engine.js";
import { serveModels } from "../../src/app/server/serve-models.js";
import { createGateway } from "../../src/gateway.js";
import type { Result } from "../framework.js";
import { serve, timeRuns } from "../serve.js";
import type { GatewayWork, LatencyWork, ServeWork } from "../serving.js";

const { values } = parseArgs({
  options: { model: { type: "string" }, threads: { type: "string", default: "2" } },
});

const chat = (content: string) => [
  { role: "user", content: `${content}. Tell me a long story about a dealer, a player and a deck of cards.` },
];

async function post<Answer>(url: string, body: object): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Answer;
}

let server: ChildProcess | undefined;

/** Starts `llamagym serve` and returns the URL of its chats. */
async function startServer(): Promise<string> {
  // Compiled, this file is bench/.build/bench/ours/serving.js.
  const command = fileURLToPath(new URL("../../../../dist/app/cli/bin.js", import.meta.url));
  const args = [command, "serve", "--model", values.model!, "--model-name", "bench", "--port", "0", "--device", "cpu"];
  const child = spawn(process.execPath, [...args, "--threads", values.threads], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  server = child;
  process.once("exit", () => child.kill());
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return `${line.slice(line.lastIndexOf("http"))}/chat/completions`;
}

/** Opens a gateway in this process, on a model that it could train. */
async function openGateway(name: string) {
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, {
    device: "cpu",
    threads: Number(values.threads),
  });
  return { model, gateway: await createGateway({ model, turns: 1, maxCompletionLength: 64 }) };
}

let serverUrl: Promise<string> | undefined;
const opened = new Map<string, ReturnType<typeof openGateway>>();
let round = 0;

/** Sends a chat that no earlier request began with, and checks that all tokens came. */
async function ask(client: number, newTokens: number): Promise<void> {
  const body = { messages: chat(`Request ${round}, client ${client}`), temperature: 0, max_tokens: newTokens };
  const { usage } = await post<{ usage: { completion_tokens: number } }>(await (serverUrl ??= startServer()), body);
  if (usage.completion_tokens !== newTokens)
    throw new Error(`${usage.completion_tokens} tokens instead of ${newTokens}`);
}

/** Makes calls in a session of the gateway and returns the number of sampled tokens. */
async function runSession(
  url: string,
  index: number,
  { calls, new_tokens: newTokens }: Omit<GatewayWork, "work">,
): Promise<number> {
  const { id, baseURL } = await post<{ id: string; baseURL: string }>(`${url}/sessions`, {});
  let tokens = 0;
  for (let call = 0; call < calls; call++) {
    const body = { messages: chat(`Round ${round}, session ${index}, call ${call}`), max_tokens: newTokens };
    const { usage } = await post<{ usage: { completion_tokens: number } }>(`${baseURL}/chat/completions`, body);
    tokens += usage.completion_tokens;
  }
  await post(`${url}/sessions/${id}/end`, { reward: 0 });
  return tokens;
}

function openOnce(name: string): ReturnType<typeof openGateway> {
  const pending = opened.get(name) ?? openGateway(name);
  opened.set(name, pending);
  return pending;
}

async function measureSessions(work: GatewayWork & { repeat: number }): Promise<Result> {
  const { gateway } = await openOnce(values.model!);
  let count = 0;
  const seconds = await timeRuns(work.repeat, async () => {
    round++;
    count = 0;
    const runs = Array.from({ length: work.sessions }, (_, index) => runSession(gateway.url, index, work));
    for (const tokens of await Promise.all(runs)) count += tokens;
  });
  return { seconds, count };
}

async function measureLatency({ rounds, calls, repeat }: LatencyWork & { repeat: number }): Promise<Result> {
  const { model, gateway } = await openOnce("embedded");
  const server = await startHttpServer({ port: 0 }, (app, metrics) =>
    serveModels(app, [new ModelChatEngine(model, "bench")], { metrics }),
  );
  const session = { sessions: 1, calls, new_tokens: 1 };
  const seconds: number[] = [];
  const totals = { direct: 0, served: 0, through: 0 };
  for (let run = 0; run < repeat; run++) {
    let through = 0;
    for (let i = 0; i < rounds; i++) {
      round++;
      const ask = (way: string, call: number) => chat(`Round ${round}, ${way} call ${call}`);
      const [direct] = await timeRuns(1, async () => {
        for (let call = 0; call < calls; call++)
          await model.generate(ask("direct", call), { maxNewTokens: 1, temperature: 1 });
      });
      const [served] = await timeRuns(1, async () => {
        for (let call = 0; call < calls; call++)
          await post(`${server.url}/v1/chat/completions`, { messages: ask("served", call), max_tokens: 1 });
      });
      const [gatewaySeconds] = await timeRuns(1, async () => void (await runSession(gateway.url, 0, session)));
      totals.direct += direct;
      totals.served += served;
      through += gatewaySeconds;
    }
    seconds.push(through);
    totals.through += through;
  }
  await server.close();
  const perCall = 1000 / (repeat * rounds * calls);
  const values = {
    added_ms: (totals.through - totals.direct) * perCall,
    added_to_http_ms: (totals.through - totals.served) * perCall,
  };
  return { seconds, count: rounds * calls, values };
}

await serve<ServeWork | GatewayWork | LatencyWork>(async (request) => {
  if (request.work === "latency") return measureLatency(request);
  if (request.work === "gateway") return measureSessions(request);
  const { clients, new_tokens: newTokens, repeat } = request;
  const seconds = await timeRuns(repeat, async () => {
    round++;
    await Promise.all(Array.from({ length: clients }, (_, client) => ask(client, newTokens)));
  });
  const median = [...seconds].sort((a, b) => a - b)[seconds.length >> 1];
  return { seconds, count: clients * newTokens, values: { "requests/s": clients / median } };
});
server?.kill();
for (const pending of opened.values()) {
  const { model, gateway } = await pending;
  await gateway.close();
  await model.close();
}
