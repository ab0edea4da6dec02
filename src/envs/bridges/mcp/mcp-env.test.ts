import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { listen } from "../../../../test/support/http-server.js";
import { AutoModelForCausalLM } from "../../../generation/auto-model.js";
import { compileToByteAutomaton } from "../../../generation/index.js";
import { TextAgent } from "../../../rl/agent/index.js";
import { openEnv } from "../../registry/open-env.js";
import "../register-openers.js";
import { splitCommand } from "./mcp-connection.js";
import { McpEnv, type McpEnvOptions } from "./mcp-env.js";
import type { McpEpisode } from "./mcp-reward.js";
import type { McpCall } from "./tool-call-space.js";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const command = `"${process.execPath}" "${join(root, "test/support/mcp-server.mjs")}"`;
const call = (name: string, args: McpCall["arguments"] = {}): McpCall => ({ name, arguments: args });

const opened: McpEnv[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((env) => env.close()));
});

async function open(options: McpEnvOptions = {}, mode = ""): Promise<McpEnv> {
  const env = await McpEnv.open(`${command} ${mode}`, { reward: "none", ...options });
  opened.push(env);
  return env;
}

describe("an MCP server over stdio as an environment", () => {
  it("offers its tools and an answer as actions, and their results as observations", async () => {
    const env = await open({ tasks: [{ prompt: "What is 2 + 3?", answer: "5" }], reward: undefined });
    expect(env.actionSpace.toString()).toMatch(/^ToolCall\(add, count, .*, finish\)$/);
    expect(env.text.systemPrompt).toContain('"name":"add","description":"Runs add."');
    expect(await env.reset({ seed: 1 })).toEqual({
      observation: "What is 2 + 3?",
      info: { task: { prompt: "What is 2 + 3?", answer: "5" } },
    });
    const action = env.text.parseAction('I add: {"name": "add", "arguments": {"a": 2, "b": 3}}')!;
    expect(await env.step(action)).toMatchObject({ observation: "5", reward: 0, terminated: false, truncated: false });
    expect(await env.step(call("finish", { answer: " 5 " }))).toMatchObject({ reward: 1, terminated: true });
    await expect(env.step(action)).rejects.toMatchObject({ code: "ENV_NOT_RESET" });
    expect(env.text.parseAction('{"name": "add", "arguments": {"a": 2}}')).toBeUndefined();
    await env.reset();
    await expect(env.step(call("add", { a: 2, b: "3" }))).rejects.toMatchObject({ code: "ENV_ACTION_INVALID" });
  });

  it("samples calls of all tools that match their schemas", async () => {
    const env = await open({ tools: ["add", "count"] }, "pages");
    env.actionSpace.seed(3);
    const samples = Array.from({ length: 60 }, () => env.actionSpace.sample());
    expect(new Set(samples.map(({ name }) => name))).toEqual(new Set(["add", "count", "finish"]));
    expect(samples.every((sample) => env.actionSpace.contains(sample))).toBe(true);
  });

  it("scores every step by a function, which may end the episode", async () => {
    const episodes: McpEpisode[] = [];
    const reward = (episode: McpEpisode) => {
      episodes.push(episode);
      return { reward: episode.steps.length, terminated: episode.steps.at(-1)!.result.text === "3" };
    };
    const env = await open({ reward, maxEpisodeSteps: 2 });
    await env.reset();
    expect(await env.step(call("refuse"))).toMatchObject({ observation: "Error: not today", reward: 1 });
    expect(await env.step(call("add", { a: 1, b: 2 }))).toMatchObject({
      reward: 2,
      terminated: true,
      truncated: false,
    });
    await env.reset();
    await env.step(call("count"));
    expect(await env.step(call("count"))).toMatchObject({ reward: 2, terminated: false, truncated: true });
    expect(episodes.map(({ isOver }) => isOver)).toEqual([false, true, false, true]);
    expect(episodes[1].messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "user"]);
  });

  it("resets the server by a tool that the model cannot call", async () => {
    const env = await open({ resetTool: "restart", tasks: [{ prompt: "Count.", setup: { start: 10 } }] });
    expect(env.actionSpace.contains(call("restart", { seed: 1 }))).toBe(false);
    for (let i = 0; i < 2; i++) {
      await env.reset();
      expect(await env.step(call("count"))).toMatchObject({ observation: "11" });
    }
  });

  it("starts a server per environment, or shares one", async () => {
    const [alone, first, second] = [await open(), await open({ shared: true }), await open({ shared: true })];
    const counts: string[] = [];
    for (const env of [alone, first, second]) {
      await env.reset();
      counts.push((await env.step(call("count"))).observation);
    }
    expect(counts).toEqual(["1", "1", "2"]);
    await first.close();
    await second.reset();
    expect(await second.step(call("count"))).toMatchObject({ observation: "3" });
  });

  it("shortens long results and passes no secrets to the server's process", async () => {
    process.env.LLAMAGYM_TEST_SECRET = "secret";
    const env = await open({ maxResultLength: 10, environment: { GIVEN: "1" } });
    await env.reset();
    expect(await env.step(call("long"))).toMatchObject({ observation: "xxxxxxxxxx\n[9990 more characters]" });
    const names = await open({ environment: { GIVEN: "1" } });
    await names.reset();
    const { observation } = await names.step(call("environment"));
    expect(observation).toContain("GIVEN");
    expect(observation).not.toContain("LLAMAGYM_TEST_SECRET");
    delete process.env.LLAMAGYM_TEST_SECRET;
  });

  it.each(["crash", "garbage", "invalid"])(
    "truncates an episode in which the server fails by %s, and starts it again",
    async (name) => {
      const env = await open();
      for (let i = 0; i < 2; i++) {
        await env.reset();
        expect(await env.step(call(name))).toMatchObject({
          truncated: true,
          reward: 0,
          info: { error: expect.stringContaining(`failed in the tool ${name}`) as string },
        });
      }
      await env.reset();
      await expect(env.step(call(name))).rejects.toMatchObject({ code: "ENV_FAILED" });
      await env.reset();
      expect(await env.step(call("add", { a: 1, b: 1 }))).toMatchObject({ observation: "2" });
    },
  );

  it("truncates an episode in which a call takes too long", async () => {
    const env = await open({ timeout: 1000 });
    await env.reset();
    expect(await env.step(call("hang"))).toMatchObject({ truncated: true });
  });

  it("rejects a server that changes its tools", async () => {
    const env = await open();
    await env.reset();
    await env.step(call("change"));
    await expect(env.reset()).rejects.toMatchObject({
      code: "ENV_INVALID",
      message: expect.stringMatching(/changed its tools/) as string,
    });
  });

  it.each([
    [
      "malformed",
      [
        /its name is nothing, expected text/,
        /its name is 5, expected text/,
        /the inputSchema of "text" is none, expected an object/,
        /the name "xxx.* has 500 characters/,
      ],
      ["open", "bare"],
    ],
    ["deep-schema", [/the inputSchema of "deep" has more than 64 levels/], []],
    ["twins", [/"add" is the name of an earlier tool/], []],
  ])("leaves out tools that cannot be called, with a warning: %s", async (mode, problems, added) => {
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    const whole = (await open()).text.systemPrompt;
    const { systemPrompt } = (await open({}, mode)).text;
    expect(warn.mock.calls.map(String)).toEqual(problems.map((problem) => expect.stringMatching(problem) as unknown));
    const namesOf = (prompt: string) => Array.from(prompt.matchAll(/^{"name":"(\w+)"/gm), ([, name]) => name);
    expect(namesOf(systemPrompt)).toEqual([...added, ...namesOf(whole)]);
    warn.mockRestore();
  });

  it("has agents that go without the tools whose schema constrains nothing, unless they were named", async () => {
    const model = await AutoModelForCausalLM.fromPretrained("embedded");
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    const agent = new TextAgent(model, (await open({}, "unsupported")).text, { actionMode: "schema" });
    expect(warn.mock.calls.map(String)).toEqual([
      expect.stringMatching(/^The tool "typo" is left out: .*#\/properties\/text, "type" must be one or a list of/),
      expect.stringMatching(/^The tool "nothing" is left out: The JSON schema matches no text/),
      expect.stringMatching(/^The tool "open" is left out: .*"unevaluatedProperties" is not supported/),
    ]);
    warn.mockRestore();
    const plain = new TextAgent(model, (await open()).text, { actionMode: "schema" });
    expect(agent.getSystemPrompt()).toBe(plain.getSystemPrompt());
    expect(agent.getSchema()).toEqual(plain.getSchema());
    const named = await open({ tools: ["add", "typo"] }, "unsupported");
    expect(() => compileToByteAutomaton({ jsonSchema: named.text.jsonSchema! })).toThrow(
      /^The tool "typo" cannot be called/,
    );
    expect(new TextAgent(model, named.text, { actionMode: "schema" }).getSchema()).toEqual(named.text.jsonSchema);
    await model.close();
  });

  it.each([
    ["exit", "ENV_FAILED", /no database/],
    ["many-tools", "ENV_INVALID", /more than 128 tools/],
    ["large-schema", "ENV_INVALID", /schemas of \d+ characters/],
    ["only-malformed", "ENV_INVALID", /no usable tool: the inputSchema of "text" is none, expected an object/],
    ["endless-pages", "ENV_INVALID", /more than 128 pages/],
  ])("rejects a server that starts with %s", async (mode, code, message) => {
    await expect(open({}, mode)).rejects.toMatchObject({ code, message: expect.stringMatching(message) as string });
  });

  it("rejects a server that does not answer, and a command that does not exist", async () => {
    await expect(open({ startTimeout: 300 }, "silent")).rejects.toMatchObject({ code: "ENV_FAILED" });
    const missing = McpEnv.open("no-such-command", { reward: "none" });
    await expect(missing).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringContaining("ENOENT") as string,
    });
  });

  it("rejects unknown tools, a missing reward, and tasks without a prompt", async () => {
    await expect(open({ tools: ["fly"] })).rejects.toThrow(/no tool fly. It has: add/);
    await expect(open({ reward: undefined })).rejects.toThrow(/needs a reward/);
    await expect(open({ task: ["x"] } as McpEnvOptions)).rejects.toThrow(/tasks/);
    await expect(open({ tasks: [] })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(splitCommand(`node "my server.js" --x='a b'`)).toEqual(["node", "my server.js", "--x=", "a b"]);
    expect(() => splitCommand('node "server')).toThrow(/names no MCP server/);
  });

  it("kills the server when this process exits", { timeout: 60_000 }, async () => {
    const module = pathToFileURL(join(root, "dist/envs/index.js")).href;
    const program = `
      import { openEnv } from ${JSON.stringify(module)};
      const env = await openEnv(${JSON.stringify(`mcp:${command} stubborn`)}, { reward: "none" });
      await env.reset();
      process.stdout.write((await env.step({ name: "pid", arguments: {} })).observation);
      process.exit(0);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    await once(child, "close");
    const pid = Number(output.trim());
    expect(pid).toBeGreaterThan(0);
    const isAlive = () => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    await expect.poll(isAlive, { timeout: 30_000 }).toBe(false);
  });
});

describe("tasks and rewards from files", () => {
  let folder: string;
  beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), "llamagym-mcp-"))));
  afterAll(() => rm(folder, { recursive: true }));

  it("reads tasks of a JSONL file and the reward of a module's export", async () => {
    await writeFile(join(folder, "tasks.jsonl"), '{"prompt":"one","n":1}\n\n{"prompt":"two","n":2}\n');
    await writeFile(join(folder, "reward.mjs"), "export const byTask = ({ task }) => task.n;\n");
    const env = await open({ tasks: join(folder, "tasks.jsonl"), reward: `${join(folder, "reward.mjs")}#byTask` });
    const rewards = new Map<string, number>();
    for (let seed = 0; seed < 10; seed++) {
      const { observation } = await env.reset({ seed });
      rewards.set(observation, (await env.step(call("count"))).reward);
    }
    expect(Object.fromEntries(rewards)).toEqual({ one: 1, two: 2 });
    const missing = open({ reward: join(folder, "reward.mjs") });
    await expect(missing).rejects.toThrow(/exports no function default/);
    await writeFile(join(folder, "bad.jsonl"), '{"prompt":"one"}\n{"question":"two"}\n');
    await expect(open({ tasks: join(folder, "bad.jsonl") })).rejects.toThrow(/bad\.jsonl:2 is not a task/);
  });
});

describe("an MCP server over HTTP as an environment", () => {
  /** Serves a counter per session. */
  async function serve(): Promise<{ url: string; sessions: Map<string, StreamableHTTPServerTransport> }> {
    const sessions = new Map<string, StreamableHTTPServerTransport>();
    const url = await listen((request, response) => {
      const known = sessions.get(String(request.headers["mcp-session-id"]));
      if (known !== undefined) return void known.handleRequest(request, response);
      if (request.headers.authorization === "Bearer wrong") return void response.writeHead(401).end();
      let count = 0;
      const server = new McpServer({ name: "counter", version: "1" });
      server.registerTool("count", { inputSchema: { by: z.number().int() } }, ({ by }) => ({
        content: [{ type: "text", text: String((count += by)) }],
      }));
      const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
        onsessionclosed: (id) => void sessions.delete(id),
      });
      void server
        .connect(transport as Parameters<typeof server.connect>[0])
        .then(() => transport.handleRequest(request, response));
    });
    return { url, sessions };
  }

  it("has a session per environment, which ends with it", async () => {
    const { url, sessions } = await serve();
    const envs = await Promise.all([1, 2].map(() => openEnv<string, McpCall>(`mcp:${url}/mcp`, { reward: "none" })));
    for (const env of envs) {
      await env.reset();
      expect(await env.step(call("count", { by: 2 }))).toMatchObject({ observation: "2" });
    }
    expect(sessions.size).toBe(2);
    for (const env of envs) await env.close();
    expect(sessions.size).toBe(0);
  });

  it("reports a server that is away, refuses, redirects or sends too much", async () => {
    const { url } = await serve();
    process.env.LLAMAGYM_TEST_TOKEN = "wrong";
    const refused = McpEnv.open(url, { reward: "none", tokenVariable: "LLAMAGYM_TEST_TOKEN" });
    await expect(refused).rejects.toMatchObject({ code: "ENV_FAILED" });
    delete process.env.LLAMAGYM_TEST_TOKEN;
    await expect(McpEnv.open(url, { reward: "none", tokenVariable: "LLAMAGYM_TEST_TOKEN" })).rejects.toThrow(
      /is not set/,
    );
    const redirecting = await listen((_request, response) => void response.writeHead(307, { location: url }).end());
    await expect(McpEnv.open(redirecting, { reward: "none" })).rejects.toMatchObject({ code: "ENV_FAILED" });
    const flooding = await listen((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const chunk = "x".repeat(2 ** 20);
      const write = () => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once("drain", write);
      };
      write();
    });
    await expect(McpEnv.open(flooding, { reward: "none" })).rejects.toMatchObject({ code: "ENV_FAILED" });
    await expect(McpEnv.open("http://127.0.0.1:9", { reward: "none" })).rejects.toMatchObject({ code: "ENV_FAILED" });
  });
});
