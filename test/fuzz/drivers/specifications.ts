import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { HttpEnv, OpenEnvClient } from "../../../src/envs/bridges/index.js";
import type { RandomStream } from "../../../src/index.js";
import type { Driver } from "../driver.js";
import { mutateJson } from "../mutate.js";

const SPACES: readonly unknown[] = [
  { type: "Discrete", n: 4, start: 0 },
  { type: "Box", low: [0, 0], high: [1, "Infinity"], shape: [2], dtype: "float32" },
  { type: "MultiBinary", n: [2, 2] },
  { type: "MultiDiscrete", nvec: [2, 3], start: [0, 0] },
  { type: "Text", max_length: 20, min_length: 0, charset: "abc" },
  {
    type: "Tuple",
    spaces: [
      { type: "Discrete", n: 2 },
      { type: "Text", max_length: 3 },
    ],
  },
  { type: "Dict", spaces: { a: { type: "Discrete", n: 2 }, b: { type: "Box", low: -1, high: 1, shape: [2, 2] } } },
  { type: "Sequence", space: { type: "Discrete", n: 2 } },
  {
    type: "OneOf",
    spaces: [
      { type: "Discrete", n: 2 },
      { type: "Discrete", n: 3 },
    ],
  },
  { type: "Graph", node_space: { type: "Box", low: 0, high: 1, shape: [1] }, edge_space: null },
];
const JSON_SCHEMA = {
  type: "object",
  properties: {
    message: { type: "string", maxLength: 100 },
    count: { anyOf: [{ type: "integer" }, { type: "null" }] },
  },
  required: ["message"],
  $defs: { A: { enum: ["a", "b"] } },
};
const OBSERVATIONS: readonly unknown[] = [
  0,
  1,
  [0.5, 0.5],
  "abc",
  {
    a: 1,
    b: [
      [0, 0],
      [0, 0],
    ],
  },
  [1, "ab"],
  null,
];

/** Replies to a client: by path, a text that is mostly JSON. */
type Replies = Readonly<Record<string, string>>;

function buildReplies(random: RandomStream): Replies {
  const space = () => random.choice(SPACES);
  const extra = { systemPrompt: "Play.", actionNames: ["a", "b", "c", "d"], renderModes: ["ansi"] };
  const spec = {
    protocol: 1,
    observationSpace: space(),
    actionSpace: space(),
    ...(random.integers(2) === 0 ? extra : {}),
  };
  const action = random.integers(2) === 0 ? { type: "object", "x-llamagym": spec } : JSON_SCHEMA;
  const observation = random.choice(OBSERVATIONS);
  const step = { observation, reward: 1, terminated: false, truncated: false, info: {}, done: false };
  const openStep = { observation: { ...step, text: "t", choices: ["a"] }, reward: 1, done: false };
  const mutatesSpec = random.integers(2) === 0;
  const write = (tree: unknown, isMutant: boolean) => (isMutant ? mutateJson(tree, random) : JSON.stringify(tree));
  return {
    "/spec": write(spec, mutatesSpec),
    "/schema": write({ action, observation: { type: "object" } }, mutatesSpec),
    "/reset": write(random.integers(2) === 0 ? step : openStep, !mutatesSpec),
    "/step": write(random.integers(2) === 0 ? step : openStep, !mutatesSpec),
    "/render": write({ text: "grid" }, !mutatesSpec),
  };
}

/**
 * Environments over HTTP, whose specification or replies are mutated; the server is a real one on
 * loopback.
 */
export const specifications: Driver = {
  timeLimitMs: 10_000,
  share: 1,
  async start() {
    let replies: Replies = {};
    const server = createServer((request: IncomingMessage, response: ServerResponse) => {
      request.resume().on("end", () => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(replies[request.url ?? ""] ?? "{}");
      });
    });
    await new Promise<void>((done) => {
      server.listen(0, "127.0.0.1", done);
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return async (random) => {
      replies = buildReplies(random);
      const env =
        random.integers(2) === 0
          ? await HttpEnv.connect(url, { timeout: 5000 })
          : await OpenEnvClient.connect(url, { transport: "http", timeout: 5000 });
      try {
        env.actionSpace.seed(1);
        const { observation, info } = await env.reset({ seed: 1 });
        env.text?.formatObservation(observation, info);
        env.text?.parseAction?.("1 2 a", info);
        await env.step(env.actionSpace.sample());
        if (env.metadata.renderModes.length > 0) await env.render("ansi");
      } finally {
        await env.close();
      }
    };
  },
};
