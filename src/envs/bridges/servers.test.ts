import { afterEach, describe, expect, it } from "vitest";
import { answer, listen } from "../../../test/support/http-server.js";
import { make, makeVector } from "../../envs.js";
import { TransformReward } from "../wrappers/reward.js";
import { HttpEnv } from "./http/http-env.js";
import { JsonSpace } from "./json-space.js";
import { openEnv } from "../registry/open-env.js";
import "./register-openers.js";
import { OpenEnvClient } from "./open-env/open-env-client.js";
import { type EnvServer, serveEnv, type ServeOptions } from "./open-env/open-env-server.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(id: string, options: ServeOptions = {}): Promise<EnvServer> {
  const server = await serveEnv(() => make(id), { port: 0, ...options });
  closers.push(() => server.close());
  return server;
}

async function connect(url: string, options = {}): Promise<OpenEnvClient> {
  const env = await OpenEnvClient.connect(url, options);
  closers.push(() => env.close());
  return env;
}

describe("an environment served over OpenEnv", () => {
  it.each(["Taxi-v4", "Pendulum-v1", "Blackjack-v1", "Wordle-v0", "WebShop-v0"])(
    "equals the local one: %s",
    async (id) => {
      const { url } = await serve(id);
      const [there, here] = [await connect(url), make(id)];
      expect(there.actionSpace.toString()).toBe(here.actionSpace.toString());
      const started = await here.reset({ seed: 11 });
      expect((await there.reset({ seed: 11 })).observation).toEqual(started.observation);
      here.actionSpace.seed(2);
      for (let i = 0; i < 5; i++) {
        const action = here.actionSpace.sample();
        const expected = await here.step(action);
        const { observation, reward, terminated, truncated, info } = await there.step(action);
        expect({ observation, reward, terminated, truncated }).toEqual({
          observation: expected.observation,
          reward: expected.reward,
          terminated: expected.terminated,
          truncated: expected.truncated,
        });
        expect(there.text?.formatObservation(observation, info)).toBe(
          here.text?.formatObservation(expected.observation, expected.info),
        );
        if (terminated || truncated) break;
      }
    },
  );

  it.each([Infinity, Number.NaN])("answers a reward of %d with an error, because JSON has none", async (value) => {
    const server = await serveEnv(() => new TransformReward(make("CliffWalking-v1"), { reward: () => value }), {
      port: 0,
    });
    closers.push(() => server.close());
    const env = await connect(server.url);
    await env.reset();
    await expect(env.step(env.actionSpace.sample())).rejects.toThrow(`returned the reward ${value} from step`);
  });

  it("has a session per client over WebSocket, and one for all over HTTP", async () => {
    const { url } = await serve("CliffWalking-v1");
    const [first, second] = [await connect(url), await connect(url)];
    await first.reset();
    await second.reset();
    expect(await first.step(0)).toMatchObject({ observation: 24 });
    expect(await second.step(3)).toMatchObject({ observation: 36 });
    const [third, fourth] = [await connect(url, { transport: "http" }), await connect(url, { transport: "http" })];
    await third.reset();
    await fourth.reset();
    await third.step(0);
    expect(await fourth.step(0)).toMatchObject({ observation: 12 });
    const post = (body: string) => fetch(`${url}/step`, { method: "POST", body });
    expect((await post('{"action":{"text":"I go up"}}')).status).toBe(200);
    for (const body of ['{"action":{"action":9}}', '{"action":{"text":"jump"}}', '{"action":3}']) {
      expect((await post(body)).status).toBe(422);
    }
    expect((await post("{")).status).toBe(400);
    expect((await fetch(`${url}/step`)).status).toBe(405);
    expect(await (await fetch(`${url}/state`)).json()).toMatchObject({ step_count: 3 });
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: "healthy" });
  });

  it("passes the criteria of `openenv validate` (openenv-core 0.3)", async () => {
    const { url } = await serve("Wordle-v0");
    const get = async (path: string) => (await fetch(url + path)).json() as Promise<Record<string, unknown>>;
    const { info, paths } = await get("/openapi.json");
    expect(info).toEqual({ title: "Wordle-v0", version: "1.0.0" });
    expect(Object.keys(paths as object)).toEqual(expect.arrayContaining(["/reset", "/step", "/state"]));
    expect(await get("/health")).toEqual({ status: "healthy" });
    expect(await get("/metadata")).toMatchObject({ name: "Wordle-v0", description: expect.any(String) as string });
    expect(await get("/schema")).toMatchObject({ action: {}, observation: {}, state: {} });
    const call = async (body: object) => {
      const response = await fetch(`${url}/mcp`, { method: "POST", body: JSON.stringify(body) });
      return { status: response.status, ...((await response.json()) as object) };
    };
    expect(await call({})).toMatchObject({ status: 200, jsonrpc: "2.0", id: null, error: { code: -32600 } });
    expect(await call({ jsonrpc: "2.0", id: 7, method: "tools/list" })).toMatchObject({
      id: 7,
      result: { tools: [{ name: "reset" }, { name: "step" }] },
    });
    expect(await call({ jsonrpc: "2.0", id: 8, method: "tools/call" })).toMatchObject({
      id: 8,
      error: { code: -32602 },
    });
  });

  it("rejects sessions beyond the maximum, a port in use, and calls after its end", async () => {
    const server = await serve("Taxi-v4", { maxSessions: 1 });
    const env = await connect(server.url);
    await env.reset();
    const refused = await connect(server.url);
    await expect(refused.reset()).rejects.toThrow(/maximum number of sessions/);
    await expect(serveEnv(() => make("Taxi-v4"), { port: server.port })).rejects.toThrow(/is in use/);
    await server.close();
    await expect(env.step(0)).rejects.toMatchObject({ code: "ENV_FAILED" });
    await expect(connect(server.url)).rejects.toThrow(/cannot be reached \(ECONNREFUSED\)/);
  });
});

describe("a foreign OpenEnv server", () => {
  const schema = { type: "object", properties: { message: { type: "string" }, metadata: {} }, required: ["message"] };

  it("takes objects of its schema, or their only text field", async () => {
    const url = await answer({
      "/schema": { action: schema, observation: {} },
      "/reset": { observation: { echoed: "ready" }, reward: null, done: false },
      "/step": { observation: { echoed: "hello" }, reward: 0.5, done: true },
    });
    const env = await connect(url, { transport: "http" });
    expect(await env.reset({ seed: 1 })).toEqual({ observation: { echoed: "ready" }, info: {} });
    expect(env.text?.formatObservation({ echoed: "ready" }, {})).toBe("ready");
    const action = env.text?.parseAction(" hello ");
    expect(action).toEqual({ message: "hello" });
    await expect(env.step({ message: 3 })).rejects.toMatchObject({ code: "ENV_ACTION_INVALID" });
    expect(await env.step(action)).toMatchObject({ reward: 0.5, terminated: true, truncated: false });
    await expect(connect(url)).rejects.toThrow(/accepts no WebSocket connection .*status 404.*transport: "http"/);
  });

  it.each([
    [{}, /not an OpenEnv server, or of a version before 0\.2/],
    [
      { "/schema": { action: { "x-llamagym": { protocol: 99 } }, observation: {} } },
      /uses protocol 99, but this client uses 1/,
    ],
  ])("is refused when it has another version: %j", async (routes, message) => {
    await expect(connect(await answer(routes))).rejects.toThrow(message);
  });

  it("is refused when it never answers", async () => {
    const url = await listen(() => {});
    await expect(connect(url, { connectTimeout: 200 })).rejects.toThrow(/did not answer \/schema within 200 ms/);
    await expect(connect("nowhere")).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});

describe("a space of a JSON Schema", () => {
  const space = new JsonSpace({
    $defs: { Move: { enum: ["up", "down"] } },
    type: "object",
    properties: {
      move: { $ref: "#/$defs/Move" },
      count: { type: "integer", minimum: 1, maximum: 3 },
      note: { type: "string" },
    },
    required: ["move", "count"],
    additionalProperties: false,
  });

  it("contains the values that match the schema", () => {
    expect(space.contains({ move: "up", count: 3 })).toBe(true);
    for (const value of [
      { move: "up" },
      { move: "left", count: 1 },
      { move: "up", count: 4 },
      { move: "up", count: 1, x: 1 },
      3,
    ]) {
      expect(space.contains(value)).toBe(false);
    }
  });

  it("contains its samples", () => {
    space.seed(1);
    for (let i = 0; i < 20; i++) expect(space.contains(space.sample())).toBe(true);
  });
});

describe("a custom HTTP server", () => {
  const spec = {
    protocol: 1,
    observationSpace: { type: "Box", low: [0], high: [9], shape: [1], dtype: "float32" },
    actionSpace: { type: "Discrete", n: 2 },
    actionNames: ["stop", "go"],
  };

  function counting(changed: object = {}): Promise<string> {
    const counts = new Map<string, number>();
    return listen((request, response) => {
      let text = "";
      request.on("data", (part: Buffer) => (text += part.toString()));
      request.on("end", () => {
        const { session = "", action = 0 } = JSON.parse(text || "{}") as { session?: string; action?: number };
        const count = request.url === "/step" ? (counts.get(session) ?? 0) + action : 0;
        counts.set(session, count);
        const body =
          request.url === "/spec"
            ? { ...spec, ...changed }
            : { observation: [count], reward: action, terminated: count >= 2 };
        response.end(JSON.stringify(body));
      });
    });
  }

  it("parses actions by name, with a session per client", async () => {
    const url = await counting();
    const [env, other] = [await openEnv(url), await HttpEnv.connect(url)];
    await env.reset();
    await other.reset();
    expect(await env.step(env.text?.parseAction("go"))).toMatchObject({ observation: Float32Array.of(1), reward: 1 });
    expect(await other.step(0)).toMatchObject({ observation: Float32Array.of(0) });
    expect(await env.step(1)).toMatchObject({ terminated: true, truncated: false, info: {} });
    await env.close();
    await other.close();
    await expect(other.reset()).rejects.toThrow(/was closed/);
  });

  it("supports vectors in this process", async () => {
    const url = await counting();
    const vector = await makeVector(url, { numEnvs: 2, envOptions: { maxEpisodeSteps: 2 } });
    closers.push(() => vector.close());
    await vector.reset();
    await vector.step([0, 1]);
    const { observations, terminated, truncated } = await vector.step([0, 1]);
    expect(observations).toEqual([Float32Array.of(0), Float32Array.of(2)]);
    expect([terminated, truncated]).toEqual([
      [false, true],
      [true, true],
    ]);
    await expect(makeVector(url, { numEnvs: 2, mode: "worker" })).rejects.toThrow(/already runs outside this process/);
  });

  it("is refused when it has another protocol version or sends no JSON", async () => {
    await expect(HttpEnv.connect(await counting({ protocol: 2 }))).rejects.toThrow(
      /uses protocol 2, but this client uses 1/,
    );
    const text = await listen((_request, response) => response.end("<html>"));
    await expect(HttpEnv.connect(text)).rejects.toThrow(/did not answer \/spec with JSON: <html>/);
    const failing = await listen((_request, response) => response.writeHead(500).end('{"error":"out of coffee"}'));
    await expect(HttpEnv.connect(failing)).rejects.toThrow(/status 500: out of coffee/);
  });
});
