import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { serve, timeRuns } from "../serve.js";
import type { ServeWork } from "../serving.js";

const { values } = parseArgs({
  options: { model: { type: "string" }, threads: { type: "string", default: "2" } },
});

// Compiled, this file is bench/.build/bench/ours/serving.js.
const command = fileURLToPath(new URL("../../../../dist/app/cli/bin.js", import.meta.url));
const args = [command, "serve", "--model", values.model!, "--model-name", "bench", "--port", "0", "--device", "cpu"];
const server = spawn(process.execPath, [...args, "--threads", values.threads], {
  stdio: ["ignore", "pipe", "inherit"],
});
process.once("exit", () => server.kill());
const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
const url = `${line.slice(line.lastIndexOf("http"))}/chat/completions`;

let round = 0;

/** Sends a chat that no earlier request began with, and checks that all tokens came. */
async function ask(client: number, newTokens: number): Promise<void> {
  const content = `Request ${round}, client ${client}. Tell me a long story about a dealer, a player and a deck of cards.`;
  const messages = [{ role: "user", content }];
  const body = { messages, temperature: 0, max_tokens: newTokens };
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const { usage } = (await response.json()) as { usage: { completion_tokens: number } };
  if (usage.completion_tokens !== newTokens)
    throw new Error(`${usage.completion_tokens} tokens instead of ${newTokens}`);
}

await serve<ServeWork>(async ({ clients, new_tokens: newTokens, repeat }) => {
  const seconds = await timeRuns(repeat, async () => {
    round++;
    await Promise.all(Array.from({ length: clients }, (_, client) => ask(client, newTokens)));
  });
  const median = [...seconds].sort((a, b) => a - b)[seconds.length >> 1];
  return { seconds, count: clients * newTokens, values: { "requests/s": clients / median } };
});
server.kill();
