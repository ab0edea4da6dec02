import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterEach, describe, expect, it } from "vitest";
import { openEnv, registry } from "../src/envs.js";
import { type McpCall, OpenEnvClient } from "../src/envs/bridges/index.js";
import "../src/text-world/index.js";
import { COMMAND_PATH, runCommand, runInHost, startCommand } from "./support/command.js";

let server: ChildProcessWithoutNullStreams | undefined;
afterEach(() => {
  server?.kill("SIGKILL");
  server = undefined;
});

/** Runs the command with lines on standard input. */
const run = (args: readonly string[], lines: readonly string[] = []) =>
  runInHost(args, { input: lines.map((line) => `${line}\n`).join("") });

describe("llamagym envs", () => {
  it("lists every environment with its task and known returns", async () => {
    const { status, out } = await runCommand(["envs"]);
    expect(status).toBe(0);
    for (const { id } of registry.all()) expect(out).toMatch(new RegExp(`^${id} +\\w.* [-\\d.]+ +[-\\d.]+$`, "m"));
    const json = JSON.parse((await run(["envs", "--json"])).out) as { environments: { id: string; best: number }[] };
    expect(json.environments.map(({ id }) => id)).toEqual(registry.all().map(({ id }) => id));
    expect(json.environments.find(({ id }) => id === "Taxi-v4")?.best).toBe(
      registry.spec("Taxi-v4").knownReturns?.best,
    );
  });

  it("describes an environment by its name in any spelling", async () => {
    const { status, out } = await run(["envs", "frozen-lake", "-o", "isSlippery=false", "--max-episode-steps=7"]);
    expect(status).toBe(0);
    for (const part of [
      "FrozenLake-v1",
      "Discrete(4)",
      "step limit     7",
      "row 0, column 0",
      "left, down, right, up",
    ]) {
      expect(out).toContain(part);
    }
    const json = JSON.parse((await run(["envs", "Pendulum-v1", "--json"])).out) as Record<string, unknown>;
    expect(json).toMatchObject({ actionSpace: { type: "Box", low: [-2], high: [2] }, maxEpisodeSteps: 200 });
  });

  it("serves an environment until it is terminated", async () => {
    const child = (server = startCommand(["envs", "serve", "taxi", "--port", "0", "--json"]));
    const line = await new Promise<string>((resolve) =>
      child.stdout.once("data", (data: Buffer) => resolve(data.toString())),
    );
    const env = await OpenEnvClient.connect((JSON.parse(line) as { url: string }).url);
    await env.reset({ seed: 1 });
    expect(await env.step(0)).toMatchObject({ reward: -1 });
    await env.close();
    child.kill("SIGTERM");
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(0);
  });

  it("serves an environment to MCP clients over standard input and output", async () => {
    const client = new Client({ name: "test", version: "1" });
    const args = [COMMAND_PATH, "envs", "serve", "frozen-lake", "--mcp", "-o", "isSlippery=false"];
    await client.connect(new StdioClientTransport({ command: process.execPath, args }));
    const step = (await client.listTools()).tools[1];
    expect(step.inputSchema.properties).toMatchObject({ action: { enum: ["left", "down", "right", "up"] } });
    expect(await client.callTool({ name: "reset", arguments: { seed: 1 } })).toMatchObject({
      content: [{ type: "text", text: expect.stringContaining("row 0, column 0") as string }],
    });
    const moves = ["down", "down", "right", "right", "down", "right"];
    let last: Awaited<ReturnType<typeof client.callTool>> | undefined;
    for (const action of moves) last = await client.callTool({ name: "step", arguments: { action } });
    expect(last?.structuredContent).toMatchObject({ reward: 1, done: true });
    await client.close();

    const id = `mcp:"${process.execPath}" "${COMMAND_PATH}" envs serve frozen-lake --mcp -o isSlippery=false`;
    const env = await openEnv<string, McpCall>(id, { resetTool: "reset", reward: "result" });
    expect((await env.reset({ seed: 1 })).observation).toContain("row 0, column 0");
    const results = [];
    for (const action of moves) results.push(await env.step({ name: "step", arguments: { action } }));
    expect(results.map(({ reward, terminated }) => [reward, terminated]).at(-1)).toEqual([1, true]);
    await env.close();
  });

  it.each([
    [["envs", "FrozenLak-v1"], 1, /ENV_UNKNOWN.*Did you mean: `FrozenLake`/],
    [["envs", "serve"], 2, /ID is missing/],
    [["envs", "taxi", "--mcp"], 2, /--mcp require serve/],
    [["envs", "serve", "taxi", "--mcp", "--port", "0"], 2, /--mcp is over standard input/],
    [["envs", "taxi", "cart-pole"], 2, /Unexpected argument "cart-pole"/],
    [["envs", "taxi", "-o", "nonsense=1"], 1, /Taxi has no option "nonsense"/],
    [["envs", "taxi", "--option", "nonsense"], 2, /--option must be name=value/],
    [["envs", "--port", "70000"], 2, /--port must be/],
    [["play"], 2, /ENV is missing/],
    [["play", "taxi", "--sed", "1"], 2, /Did you mean --seed\?/],
    [["play", "openenv:http://127.0.0.1:9"], 1, /ENV_FAILED.*cannot be reached/],
  ])("rejects %j with status %i and one line", async (args, status, message) => {
    const result = await runInHost(args);
    expect({ status: result.status, out: result.out }).toEqual({ status, out: "" });
    expect(result.err).toMatch(message);
    expect(result.err.trim()).not.toContain("\n");
  });
});

describe("llamagym play", () => {
  it("takes names and numbers, suggests the nearest name, and ends with the input", async () => {
    const lines = [
      "dwn",
      "down",
      "1",
      "/actions",
      "right",
      "down",
      "2",
      "right",
      "left",
      "/reset",
      "/hlep",
      "/quit",
      "up",
    ];
    const args = ["play", "frozen-lake", "--seed", "1", "-o", "isSlippery=false"];
    const { status, out } = await runCommand(args, { input: lines.map((line) => `${line}\n`).join("") });
    expect(status).toBe(0);
    expect(out).toContain('"dwn" is not a valid action. Did you mean "down"?');
    expect(out).toContain("2  right");
    expect(out).toContain("The episode ended after 6 steps: return 1.");
    expect(out).toContain("The episode has ended. /reset starts another");
    expect(out).toContain("There is no command /hlep.");
  });

  it("shows the dealer's hand at the end of an episode of Blackjack", async () => {
    const { out } = await run(["play", "blackjack", "--seed", "3"], ["stay"]);
    expect(out).toContain("Dealer: KC ??\nPlayer: 7");
    expect(out).toContain("Dealer: KC 2 10 (22)\nPlayer: 7\nReward 1.");
  });

  it("plays a text world by commands and by their numbers", async () => {
    const { status, out } = await run(["play", "text-world", "--seed", "1"], ["look", "/actions", "0"]);
    expect(status).toBe(0);
    const [list, afterList] = out.split(/^0 {2}/m);
    expect(list).toContain("> look");
    const [first] = afterList.split("\n");
    expect(afterList.split(/^> /m)[1].split("\n")[0]).toBe(first);
  });

  it("shows the text interface with --text, and takes numbers as continuous actions", async () => {
    const { out } = await run(["play", "pendulum", "--text", "--seed", "1"], ["0.5", "nothing", "99"]);
    expect(out).toMatch(/Reward -\d/);
    expect(out).toContain('"nothing" is not a valid action.');
  });
});
