import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, afterAll, describe, expect, it } from "vitest";
import { Hono } from "hono";
import { WebSocket } from "ws";
import { OpenEnvClient } from "../../envs/bridges/open-env/open-env-client.js";
import { make } from "../../envs.js";
import { serveEnv } from "../../envs/bridges/index.js";
import { startDashboard } from "../dashboard/server.js";
import { startHttpServer } from "./http-server.js";
import { listenWithApp } from "./listen.js";
import { readJsonBody } from "./read-json-body.js";

/** More than the requests that a server answers at once. */
const SLOW_CLIENTS = 1100;

interface TestServer {
  readonly url: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const addEcho = (app: Hono) => void app.post("/echo", async (context) => context.json(await readJsonBody(context)));
let runs: string;
const sockets: Socket[] = [];
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  runs = await mkdtemp(join(tmpdir(), "slow-clients-"));
});
afterAll(() => rm(runs, { recursive: true }));
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const close of closers.splice(0)) await close();
});

async function open(server: TestServer | Promise<TestServer>): Promise<TestServer> {
  const opened = await server;
  closers.push(() => opened.close());
  return opened;
}

/** Opens a connection and writes the beginning of a request. */
async function begin({ url }: { readonly url: string }, text: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  sockets.push(socket);
  await new Promise((done) => socket.once("connect", done));
  socket.write(text);
  return socket;
}

const slowBody = ({ url, path, headers = {} }: TestServer) =>
  [
    `POST ${path} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    "Content-Type: application/json",
    "Content-Length: 1000",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    "{",
  ].join("\r\n");

async function post({ url, path, headers }: TestServer, body = "{}"): Promise<number> {
  const given = { "content-type": "application/json", ...headers };
  return (await fetch(url + path, { method: "POST", body, headers: given })).status;
}

/** Sends a request with headers that `fetch` does not allow to set. */
async function rawStatus({ url, path }: TestServer, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url + path, { method: "POST", headers: { "content-type": "application/json", ...headers } }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on("error", reject)
      .end("{}");
  });
}

const SERVERS: readonly [string, () => Promise<TestServer>, number][] = [
  [
    "the servers of models and of the gateway",
    async () => ({ ...(await startHttpServer({ port: 0 }, addEcho)), path: "/echo" }),
    200,
  ],
  [
    "the dashboard",
    async () => {
      const dashboard = await startDashboard({ runs });
      const { origin, searchParams } = new URL(dashboard.url);
      const headers = { authorization: `Bearer ${searchParams.get("token")}` };
      return { url: origin, path: "/api/runs/none/control", headers, close: async () => dashboard.close() };
    },
    // There is no such run, and the empty object is no request.
    400,
  ],
  [
    "an environment's server",
    async () => ({ ...(await serveEnv(() => make("Taxi-v4"), { port: 0 })), path: "/reset" }),
    200,
  ],
  [
    "an environment's MCP endpoint",
    async () => ({ ...(await serveEnv(() => make("Taxi-v4"), { port: 0 })), path: "/mcp" }),
    200,
  ],
];

describe.each(SERVERS)("%s", (_, start, status) => {
  it("answers while more bodies than it takes requests never end", async () => {
    const server = await open(start());
    await Promise.all(Array.from({ length: SLOW_CLIENTS }, () => begin(server, slowBody(server))));
    expect(await post(server)).toBe(status);
  });

  it("refuses compressed bodies, foreign host names and foreign pages", async () => {
    const server = await open(start());
    const { headers } = server;
    expect(await rawStatus(server, { ...headers })).toBe(status);
    expect(await rawStatus(server, { ...headers, "content-encoding": "gzip" })).toBe(415);
    expect([403, 421]).toContain(await rawStatus(server, { ...headers, host: "attacker.example" }));
    for (const origin of ["http://attacker.example", "null", "http://localhost.attacker.example"])
      expect(await rawStatus(server, { ...headers, origin })).toBe(403);
    expect(await rawStatus(server, { ...headers, origin: server.url })).toBe(status);
  });
});

describe("a server with an app", () => {
  it("answers requests that do not arrive in time with status 408 and closes their connections", async () => {
    const app = new Hono().onError((_error, context) => context.text("refused", 500));
    addEcho(app);
    const listener = await listenWithApp(app, { host: "127.0.0.1", port: 0, requestTimeoutMs: 100 });
    closers.push(() => listener.server.close());
    for (const text of [slowBody({ ...listener, path: "/echo", close: async () => {} }), "POST /echo HTTP/1.1\r\nHo"]) {
      const socket = await begin(listener, text);
      let answer = "";
      socket.on("data", (data) => (answer += data.toString()));
      await new Promise((done) => socket.once("close", done));
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    }
  });

  it("drops the oldest unfinished bodies when they take too much memory together", async () => {
    const server = await open(SERVERS[0][1]());
    const part = "x".repeat(7 * 2 ** 20);
    const head = slowBody(server).replace("1000", String(8 * 2 ** 20));
    const answers: string[] = [];
    const send = async (i: number) => {
      const socket = await begin(server, head + part);
      socket.on("data", (data) => (answers[i] = (answers[i] ?? "") + data.toString()));
      await new Promise((done) => (socket.writableLength === 0 ? done(undefined) : socket.once("drain", done)));
    };
    // 40 bodies of 7 MiB are more than 256 MiB.
    for (let i = 0; i < 40; i++) await send(i);
    await expect.poll(() => answers[0], { timeout: 10_000 }).toMatch(/^HTTP\/1\.1 503 /);
    expect(await post(server, JSON.stringify({ text: part }))).toBe(200);
    expect(answers[39]).toBeUndefined();
  });
});

describe("an environment's WebSocket", () => {
  it("has room for clients while more idle connections than sessions are open", async () => {
    const server = await serveEnv(() => make("Taxi-v4"), { port: 0, maxSessions: 2 });
    closers.push(() => server.close());
    const idle = Array.from({ length: 10 }, () => new WebSocket(`${server.url.replace("http", "ws")}/ws`));
    await Promise.all(idle.map((socket) => new Promise((done) => socket.once("open", done))));
    const env = await OpenEnvClient.connect(server.url);
    expect((await env.reset({ seed: 1 })).observation).toBeTypeOf("number");
    await env.close();
    for (const socket of idle) socket.terminate();
  });

  it("drops the oldest unfinished messages when they take too much memory together, and counts no pings", async () => {
    const server = await serveEnv(() => make("Taxi-v4"), { port: 0 });
    closers.push(() => server.close());
    const url = `${server.url.replace("http", "ws")}/ws`;
    const openSocket = async () => {
      const socket = new WebSocket(url).on("error", () => {});
      closers.unshift(() => socket.terminate());
      await new Promise((done) => socket.once("open", done));
      return socket;
    };
    const send = (socket: WebSocket, data: string, fin = false) =>
      new Promise((done) => socket.send(data, { fin }, done));
    const patient = await openSocket();
    await send(patient, " ".repeat(20 * 2 ** 20));
    const pinging = await openSocket();
    const ping = async () => {
      const pong = new Promise((done) => pinging.once("pong", done));
      pinging.ping("x".repeat(100));
      await pong;
    };
    for (let i = 0; i < 5; i++) await ping();
    const hasEnded = new Promise((done) => patient.once("close", done));
    const others = await Promise.all(Array.from({ length: 9 }, openSocket));
    for (const socket of others) await send(socket, " ".repeat(30 * 2 ** 20));
    await hasEnded;
    const reply = new Promise((done) => others[8].once("message", (data: Buffer) => done(data.toString())));
    await send(others[8], '{"type":"state"}', true);
    expect(await reply).toContain("step_count");
    await ping();
    expect(pinging.readyState).toBe(WebSocket.OPEN);
  });

  it("answers all of many messages that are sent at once, in their order", async () => {
    const server = await serveEnv(() => make("Taxi-v4"), { port: 0 });
    closers.push(() => server.close());
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/ws`);
    closers.unshift(() => socket.terminate());
    await new Promise((done) => socket.once("open", done));
    const replies: string[] = [];
    const hasAll = new Promise<void>((done) =>
      socket.on("message", (data: Buffer) => {
        if (replies.push(data.toString()) === 3000) done();
      }),
    );
    for (let i = 0; i < 1000; i++) {
      socket.send('{"type":"reset","data":{"seed":1}}');
      socket.send('{"type":"step","data":{"action":0}}');
      socket.send('{"type":"unknown"}');
    }
    await hasAll;
    expect(replies.filter((_, i) => i % 3 === 2).every((reply) => reply.includes("UNKNOWN_TYPE"))).toBe(true);
    expect(new Set(replies.filter((_, i) => i % 3 === 1)).size).toBe(1);
  });

  it("refuses foreign host names and foreign pages, and accepts the hosts it was given", async () => {
    const server = await serveEnv(() => make("Taxi-v4"), { port: 0, allowedHosts: ["Env.example"] });
    closers.push(() => server.close());
    const open = async (headers: Readonly<Record<string, string>>) => {
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/ws`, { headers });
      const result = await new Promise((done) => {
        socket.once("open", () => done("open")).once("error", ({ message }) => done(message));
      });
      socket.terminate();
      return result;
    };
    expect(await open({ host: "attacker.example" })).toContain("403");
    expect(await open({ origin: "http://attacker.example" })).toContain("403");
    expect(await open({ host: "env.example:8000" })).toBe("open");
    expect(await open({ origin: "http://localhost:3000" })).toBe("open");
  });
});
