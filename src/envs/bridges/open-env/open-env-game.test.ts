import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { openEnv, type EnvOptions, type GameEnv } from "../../../envs.js";
import type { OpponentTurn } from "../../games/opponents.js";
import "../register-openers.js";
import { OpenEnvClient } from "./open-env-client.js";

const opened: { close: () => unknown }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
});

async function open(url: string, options: EnvOptions = {}): Promise<GameEnv<unknown, unknown>> {
  const env = await openEnv(`openenv:${url}`, options);
  opened.push(env);
  return env as GameEnv<unknown, unknown>;
}

const say = (message: string) => ({ message });
const takeOne = () => say("take 1");

/** A Python with OpenEnv's server, if available. */
const real = [process.env.LLAMAGYM_TEST_PYTHON, "bench/peers/.venv/bin/python", "python3"].find(
  (python) => python !== undefined && spawnSync(python, ["-c", "import openenv.core, uvicorn"]).status === 0,
);

describe.skipIf(real === undefined)("a game on OpenEnv's own server (skipped without a Python that has it)", () => {
  const script = fileURLToPath(new URL("../../../../test/fixtures/envs/open_env_game.py", import.meta.url));
  let url = "";
  let server: ReturnType<typeof spawn>;
  beforeAll(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    server = spawn(real!, [script, String(port)], { stdio: "ignore" });
    await vi.waitFor(async () => fetch(`${url}/health`), { timeout: 60_000, interval: 200 });
  }, 90_000);
  afterAll(() => server.kill());

  it("is played against an opponent, who gets the opposite reward", async () => {
    const seen: unknown[] = [];
    const opponent = ({ seat, observation }: OpponentTurn) => {
      seen.push([seat, (observation as { current_player_id: number }).current_player_id]);
      return takeOne();
    };
    const env = await open(url, { opponent, seat: 0 });
    const { observation, info } = await env.reset({ seed: 0 });
    expect(env.text.formatObservation(observation, info)).toBe(
      "Take 1 or 2 objects. Who takes the last one wins.\n5 left.",
    );
    expect(env.text.systemPrompt).toContain("You are player 0.");
    // 5, 4, 3, 2, 1: the first seat takes the last one.
    for (let turn = 0; turn < 2; turn++)
      expect(await env.step(takeOne())).toMatchObject({ reward: 0, terminated: false });
    expect(await env.step(takeOne())).toMatchObject({ reward: 1, terminated: true, truncated: false });
    expect(seen).toEqual([
      [1, 1],
      [1, 1],
    ]);
  });

  it("gives the reward of the other seat to an agent that moves second", async () => {
    const env = await open(url, { opponent: takeOne, seat: 1 });
    await env.reset({ seed: 0 });
    await env.step(takeOne());
    expect(await env.step(takeOne())).toMatchObject({ reward: -1, terminated: true });
  });

  it("counts a reply without an action as a lost game", async () => {
    const env = await open(url, { opponent: takeOne, seat: 0 });
    await env.reset();
    const { game } = env.unwrapped as GameEnv;
    expect(await game.step(undefined)).toMatchObject({ rewards: [-1, 1], terminated: true, info: { illegal: 0 } });
    await expect(Promise.resolve(game.step(takeOne()))).rejects.toMatchObject({ code: "ENV_NOT_RESET" });
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe("a foreign server whose observations name players", () => {
  const action = { type: "object", properties: { message: { type: "string" } }, required: ["message"] };
  const position = (player: unknown, fields: object = {}) => ({
    observation: { text: "Your move.", current_player_id: player, legal_players: [0, 1], ...fields },
  });

  /** Serves replies by the type of the message; observations name players by default. */
  async function serve(replies: Readonly<Record<string, object>>, properties: object = { legal_players: {} }) {
    const http = createServer((_request, response) => {
      response.end(JSON.stringify({ action, observation: { properties } }));
    }).listen(0, "127.0.0.1");
    const sockets = new WebSocketServer({ server: http, path: "/ws" });
    sockets.on("connection", (socket) =>
      socket.on("message", (data: Buffer) => {
        const { type, ...rest } = JSON.parse(data.toString()) as { type: string };
        const isState = type === "state";
        // As OpenEnv's server, which refuses a request of the state with data.
        const reply = isState && Object.keys(rest).length > 0 ? undefined : replies[type];
        socket.send(JSON.stringify({ type: reply ? (isState ? type : "observation") : "error", data: reply ?? {} }));
      }),
    );
    await new Promise((resolve) => http.once("listening", resolve));
    opened.push({
      close: () => {
        for (const client of sockets.clients) client.terminate();
        http.close();
      },
    });
    return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  }

  const play = async (replies: Readonly<Record<string, object>>) => {
    const env = await open(await serve({ reset: position(0), ...replies }), { opponent: takeOne, seat: 0 });
    await env.reset();
    return env.step(say("go"));
  };

  it("gives each player the reward in the state at the end", async () => {
    const step = { ...position(1), reward: 1, done: true };
    for (const state of [{ rewards: { 0: -0.5, 1: 0.5 } }, { raw_state: { rewards: { 0: -0.5, 1: 0.5 } } }])
      expect(await play({ step, state })).toMatchObject({ reward: -0.5, terminated: true });
  });

  it.each<[string, Readonly<Record<string, object>>, RegExp]>([
    [
      "without the rewards of all players",
      { step: { ...position(1), reward: 1, done: true }, state: { rewards: { 1: 1 } } },
      /no finite reward for each of the players 0, 1 in the state after a game .*\{"1":1\}/,
    ],
    [
      "with a reward before the end",
      { step: { ...position(1), reward: 0.5, done: false } },
      /reward 0\.5 before the end of the game, without saying which player gets it/,
    ],
    ["with an unknown player", { step: position(7) }, /current_player_id that is no player: 7/],
    ["with the text yes for done", { step: { ...position(1), done: "yes" } }, /without done/],
  ])("is refused when it answers %s", async (_name, replies, message) => {
    await expect(play(replies)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(message) as string,
    });
  });

  it("is no environment for one agent", async () => {
    const url = await serve({ reset: position(0) });
    const client = await OpenEnvClient.connect(url);
    opened.push(client);
    await expect(client.reset()).rejects.toThrow(/game of 2 players, for all of whom its client moves/);
  });

  it("has no random player, and no minimax", async () => {
    const url = await serve({ reset: position(0), step: position(1) });
    const env = await open(url);
    await env.reset({ seed: 1 });
    await expect(Promise.resolve(env.step(say("go")))).rejects.toThrow(/has no random player.*--self-play/);
    await expect(open(url, { opponent: "random" })).rejects.toThrow(/has no random player/);
    await expect(open(url, { opponent: "minimax" })).rejects.toThrow(/has no minimax player/);
    await expect(open(url, { opponent: takeOne, seat: 2 })).rejects.toThrow(/seats 0 to 1/);
  });

  it("is an environment where there is one player, which has no seat", async () => {
    const single = {
      reset: position(0, { legal_players: [0] }),
      step: { ...position(0, { legal_players: [0] }), reward: 2 },
    };
    const env = await open(await serve(single));
    await env.reset();
    expect(await env.step(say("go"))).toMatchObject({ reward: 2 });
    await expect(open(await serve(single), { seat: 0 })).rejects.toThrow(/no players to choose/);
    await expect(open(await serve(single, {}), { opponent: "random" })).rejects.toThrow(/no players to choose/);
  });
});
