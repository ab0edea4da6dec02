import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { AutoModelForCausalLMWithValueHead } from "../../src/index.js";
import { createGateway } from "../../src/gateway.js";
import type { Result } from "../framework.js";
import { serve, timeRuns } from "../serve.js";
import type { DirectWork, GatewayWork, ServeWork } from "../serving.js";

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
async function runSession(url: string, index: number, { calls, new_tokens: newTokens }: GatewayWork): Promise<number> {
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

async function measureGateway(work: (GatewayWork | DirectWork) & { repeat: number }): Promise<Result> {
  const name = work.embedded ? "embedded" : values.model!;
  const pending = opened.get(name) ?? openGateway(name);
  opened.set(name, pending);
  const { model, gateway } = await pending;
  let count = 0;
  const seconds = await timeRuns(work.repeat, async () => {
    round++;
    count = 0;
    if (work.work === "direct") {
      for (let call = 0; call < work.calls; call++)
        await model.generate(chat(`Round ${round}, call ${call}`), { maxNewTokens: work.new_tokens, temperature: 1 });
      count = work.calls * work.new_tokens;
    } else {
      const runs = Array.from({ length: work.sessions }, (_, index) => runSession(gateway.url, index, work));
      for (const tokens of await Promise.all(runs)) count += tokens;
    }
  });
  return { seconds, count };
}

await serve<ServeWork | GatewayWork | DirectWork>(async (request) => {
  if (request.work !== "serve") return measureGateway(request);
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
