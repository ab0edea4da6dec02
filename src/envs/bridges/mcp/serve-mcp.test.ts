import { PassThrough } from "node:stream";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { JsonObject } from "../../../core/json.js";
import { Env, make, openEnv, SchemaSpace, Text } from "../../../envs.js";
import { serveEnv, serveMcp, type ServeOptions } from "../../bridges/index.js";
import type { McpCall } from "./tool-call-space.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(makeEnv: () => Env, options: ServeOptions = {}): Promise<string> {
  const server = await serveEnv(makeEnv, { port: 0, ...options });
  closers.push(() => server.close());
  return server.url;
}

/** Connects the official client. */
async function connect(url: string) {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`));
  await client.connect(transport);
  closers.push(() => client.close());
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
    const [{ text }] = content as { text: string }[];
    return { text, isError: isError === true, fields: structuredContent as Record<string, unknown> | undefined };
  };
  return { client, transport, call };
}

/** Posts a message without the client. */
async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/mcp`, { method: "POST", body: JSON.stringify(body), headers });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : (JSON.parse(text) as JsonObject) };
}

/** Counts how often it was closed; its actions are objects. */
class Room extends Env<string, unknown> {
  static closed = 0;
  override readonly observationSpace = new Text(100);
  override readonly actionSpace = new SchemaSpace(z.object({ device: z.enum(["lamp", "fan"]) }));
  private steps = 0;
  override reset() {
    this.steps = 0;
    return { observation: "dark", info: {} };
  }
  override step(action: unknown) {
    return {
      observation: `${JSON.stringify(action)} ${++this.steps}`,
      reward: 1,
      terminated: true,
      truncated: false,
      info: {},
    };
  }
  override close() {
    Room.closed++;
  }
}

describe("an environment served over MCP", () => {
  it("has the tools reset and step, with the observation as text and the reward in the structured content", async () => {
    const { client, call } = await connect(await serve(() => make("Blackjack-v1")));
    expect(client.getServerVersion()).toMatchObject({ name: "Blackjack-v1" });
    expect(client.getInstructions()).toMatch(/^You are an expert blackjack player/);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["reset", "step"]);
    expect(tools[1].inputSchema.properties).toEqual({ action: { type: "string", enum: ["stay", "hit"] } });

    const local = make("Blackjack-v1");
    const { observation, info } = await local.reset({ seed: 3 });
    const first = await call("reset", { seed: 3 });
    expect(first.text).toBe(local.text!.formatObservation(observation, info));
    expect(first.fields).toMatchObject({ reward: null, done: false, choices: ["stay", "hit"] });
    expect(await call("step", { action: "fold" })).toMatchObject({
      isError: true,
      text: 'No action is named in "fold".',
    });
    expect(await call("step")).toMatchObject({ isError: true });
    const expected = await local.step(0);
    const { text, fields } = await call("step", { action: "stay" });
    expect(text).toBe(local.text!.formatObservation(expected.observation, expected.info));
    expect(fields).toMatchObject({ reward: expected.reward, done: true, terminated: true, truncated: false });
    await expect(client.callTool({ name: "fly" })).rejects.toThrow(/The tools are reset and step/);
    await client.ping();
  });

  it.each([
    ["Taxi-v4", { type: "string", enum: expect.arrayContaining(["pick up"]) as string[] }],
    ["Wordle-v0", { type: "string" }],
    ["Pendulum-v1", { type: "string", enum: expect.arrayContaining(["-2.00", "+2.00"]) as string[] }],
  ])("describes the actions of %s", async (id, schema) => {
    const { client } = await connect(await serve(() => make(id)));
    const { tools } = await client.listTools();
    expect(tools[1].inputSchema.properties).toEqual({ action: schema });
  });

  it("takes actions as their space encodes them, where there is no text interface", async () => {
    const { client, call } = await connect(await serve(() => new Room()));
    const { tools } = await client.listTools();
    expect(tools[1].inputSchema.properties).toMatchObject({ action: { properties: { device: {} } } });
    await call("reset");
    expect(await call("step", { action: { device: "lamp" } })).toMatchObject({
      text: '{"device":"lamp"} 1',
      fields: { reward: 1, done: true },
    });
    expect(await call("step", { action: { device: "fan" } })).toMatchObject({
      isError: true,
      text: "The episode has ended. Reset the environment.",
    });
    await call("reset");
    expect(await call("step", { action: { device: "door" } })).toMatchObject({ isError: true });
  });

  it("gives each client its own environment, which ends with the client's session", async () => {
    const closed = Room.closed;
    const url = await serve(() => new Room(), { maxSessions: 2 });
    const [first, second] = [await connect(url), await connect(url)];
    for (const { call } of [first, second]) await call("reset");
    for (const { call } of [first, second])
      expect(await call("step", { action: { device: "fan" } })).toMatchObject({ text: '{"device":"fan"} 1' });
    await expect(connect(url)).rejects.toThrow(/maximum number of sessions/);
    await first.transport.terminateSession();
    expect(Room.closed).toBe(closed + 1);
    await connect(url);
  });

  it("shares one environment among clients without a session, as OpenEnv's are", async () => {
    const url = await serve(() => make("CliffWalking-v1"));
    const call = (name: string, args: JsonObject = {}) =>
      post(url, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
    expect(await call("reset")).toMatchObject({
      status: 200,
      body: { result: { structuredContent: { done: false } } },
    });
    await call("step", { action: "up" });
    const state = (await (await fetch(`${url}/state`)).json()) as JsonObject;
    expect(state).toMatchObject({ step_count: 1 });
  });

  it("refuses foreign pages, unknown sessions, protocols and methods, and replies to no notification", async () => {
    const url = await serve(() => make("Taxi-v4"));
    const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
    expect(await post(url, ping)).toEqual({ status: 200, body: { jsonrpc: "2.0", id: 1, result: {} } });
    expect(await post(url, ping, { origin: "http://localhost:3000" })).toMatchObject({ status: 200 });
    for (const origin of ["https://example.com", "http://localhost.example.com", "null"])
      expect(await post(url, ping, { origin })).toMatchObject({ status: 403 });
    expect(await post(url, ping, { "mcp-session-id": "none" })).toMatchObject({ status: 404 });
    expect(await post(url, ping, { "mcp-protocol-version": "1999-01-01" })).toMatchObject({ status: 400 });
    expect(await post(url, { jsonrpc: "2.0", method: "notifications/initialized" })).toEqual({ status: 202 });
    expect(await post(url, { ...ping, method: "prompts/list" })).toMatchObject({ body: { error: { code: -32601 } } });
    expect(await post(url, [ping])).toMatchObject({ status: 400 });
    expect((await fetch(`${url}/mcp`)).status).toBe(405);
    const initialize = { ...ping, method: "initialize", params: { protocolVersion: "1999-01-01" } };
    expect(await post(url, initialize)).toMatchObject({ body: { result: { protocolVersion: "2025-11-25" } } });
  });

  it("is an environment again as mcp:URL, with the rewards of its results", async () => {
    const url = await serve(() => make("Blackjack-v1"));
    const there = await openEnv<string, McpCall>(`mcp:${url}/mcp`, { resetTool: "reset", reward: "result" });
    closers.push(() => Promise.resolve(there.close()));
    expect(there.actionSpace.toString()).toBe("ToolCall(step)");
    const rewards = new Set<number>();
    for (let seed = 1; seed <= 20; seed++) {
      expect((await there.reset({ seed })).observation).toMatch(/^Your current total is \d+\./);
      const { reward, terminated } = await there.step({ name: "step", arguments: { action: "stay" } });
      expect(terminated).toBe(true);
      rewards.add(reward);
    }
    expect([...rewards].toSorted((a, b) => a - b)).toEqual(expect.arrayContaining([-1, 1]));
  });
});

describe("an environment served over standard input and output", () => {
  it("answers each line, ends with its input and closes the environment", async () => {
    const closed = Room.closed;
    const [input, output] = [new PassThrough(), new PassThrough()];
    const served = serveMcp(new Room(), { input, output });
    const send = (message: unknown) =>
      input.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
    send("not JSON");
    send({ jsonrpc: "2.0", method: "notifications/initialized" });
    send({ jsonrpc: "2.0", id: "a", method: "tools/call", params: { name: "reset" } });
    input.end();
    await served;
    output.end();
    const replies = (await output.setEncoding("utf8").toArray()).join("").trim().split("\n");
    expect(replies.map((line) => JSON.parse(line) as JsonObject)).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: "a", result: { structuredContent: { observation: "dark" } } },
    ]);
    expect(Room.closed).toBe(closed + 1);
  });

  it("ends when its signal is aborted", async () => {
    const closed = Room.closed;
    const controller = new AbortController();
    const input = new PassThrough();
    const served = serveMcp(new Room(), { input, output: new PassThrough(), signal: controller.signal });
    controller.abort();
    await served;
    expect(Room.closed).toBe(closed + 1);
  });
});
