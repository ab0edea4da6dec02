import { describe, expect, it } from "vitest";
import { serveEnv } from "./bridges/open-env/open-env-server.js";
import { OpenEnvClient } from "./bridges/open-env/open-env-client.js";
import { closeEnv, Env, saveEnvState, type EnvState, type ResetResult, type StepResult } from "./env.js";
import { register, make } from "./registry/make.js";
import { Discrete } from "./spaces/discrete.js";
import { SyncVectorEnv } from "./vector/sync-vector-env.js";

/** An environment that works; the tests break one method of it. */
class Coin extends Env<number, number> {
  override readonly observationSpace = new Discrete(2);
  override readonly actionSpace = new Discrete(2);
  isClosed = false;

  override reset(): ResetResult<number> {
    return { observation: 0, info: {} };
  }

  override step(): StepResult<number> {
    return { observation: 1, reward: 1, terminated: false, truncated: false, info: {} };
  }

  protected override saveState(): null {
    return null;
  }

  override close(): void {
    this.isClosed = true;
  }
}

const circular: { self?: unknown } = {};
circular.self = circular;

function makeBroken(methods: object): Env {
  register({ id: "Broken-v0", entryPoint: () => Object.assign(new Coin(), methods) });
  return make("Broken-v0");
}

describe("an environment whose method is broken", () => {
  it.each([
    ["undefined", undefined],
    ["a number", 3],
    ["null", null],
    ["a class", Coin],
  ])("is refused by make when its factory returns %s", (_, value) => {
    register({ id: "Broken-v0", entryPoint: () => value as unknown as Env });
    expect(() => make("Broken-v0")).toThrow(/The entry point of Broken-v0 did not return an Env, but/);
  });

  it.each([
    ["nothing", undefined, /reset\(\) returned undefined: return an object \{ observation, info \}/],
    ["an array", [0, {}], /reset\(\) returned an array of 2/],
    ["no observation", { info: {} }, /reset\(\) returned \{"info":\{\}\}/],
    ["no info", { observation: 0 }, /reset\(\) returned the info undefined/],
  ])("fails with its name when reset returns %s", (_, result, message) => {
    const env = makeBroken({ reset: () => result });
    expect(() => env.reset()).toThrow(message);
    expect(() => env.reset()).toThrow("<Coin<Broken-v0>>");
  });

  it.each([
    ["nothing", undefined, /step\(\) returned undefined/],
    ["an array of four", [0, 0, false, {}], /step\(\) returned an array of 4/],
    [
      "no reward",
      { observation: 0, terminated: false, truncated: false, info: {} },
      /step\(\) returned \{"observation":0/,
    ],
    ["a list as info", { observation: 0, reward: 0, terminated: false, truncated: false, info: [] }, /the info \[\]/],
  ])("fails with its name when a later step returns %s", async (_, result, message) => {
    let steps = 0;
    const working = new Coin();
    const env = makeBroken({ step: () => (steps++ === 0 ? working.step() : result) });
    await env.reset();
    await env.step(0);
    const step = async () => env.step(0);
    await expect(step()).rejects.toMatchObject({
      code: "ENV_INVALID",
      message: expect.stringMatching(message) as string,
    });
    await expect(step()).rejects.toThrow("<Coin<Broken-v0>>");
  });

  it.each([
    ["circular", circular, /The state of <Coin<Broken-v0>> is not JSON, so it cannot be saved: .*circular/],
    ["a bigint", { count: 3n }, /is not JSON, .*BigInt/],
    ["huge", "a".repeat(2 ** 26), /has 671\d+ characters as JSON, at most 33554432/],
  ])("fails with its name when its state is %s", (_, state, message) => {
    const env = makeBroken({ saveState: () => state });
    expect(() => saveEnvState(env)).toThrow(expect.objectContaining({ code: "ENV_INVALID" }));
    expect(() => saveEnvState(env)).toThrow(message);
    const own = Object.assign(new Coin(), { getState: () => ({ state }) as unknown as EnvState });
    expect(() => saveEnvState(own)).toThrow(/<Coin>/);
  });

  it("fails with its name when close throws", async () => {
    const env = makeBroken({
      close: () => {
        throw new TypeError("the door is stuck");
      },
    });
    await expect(closeEnv(env)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(/Coin<Broken-v0>.* threw in close: the door is stuck/) as string,
    });
  });
});

class StuckCoin extends Coin {
  override close(): void {
    throw new TypeError("the door is stuck");
  }
}

describe("a vector of broken environments", () => {
  it("is refused when a factory returns none, and closes the others", async () => {
    const coin = new Coin();
    const factories = [() => coin, () => undefined as unknown as Coin];
    await expect(SyncVectorEnv.create(factories)).rejects.toThrow(/The factory of environment 1 did not return an Env/);
    expect(coin.isClosed).toBe(true);
  });

  it("closes every environment when one throws in close", async () => {
    const coins = [new StuckCoin(), new Coin()];
    const vector = await SyncVectorEnv.create(coins.map((coin) => () => coin));
    await expect(vector.close()).rejects.toMatchObject({ code: "ENV_FAILED" });
    expect(coins[1].isClosed).toBe(true);
  });
});

describe("a server of broken environments", () => {
  it("is refused when its function returns none", async () => {
    const serving = serveEnv(() => undefined as unknown as Env, { port: 0 });
    await expect(serving).rejects.toMatchObject({ code: "ENV_INVALID" });
  });

  it("keeps running when the environment of a session throws in close", async () => {
    const server = await serveEnv(() => new StuckCoin(), { port: 0 });
    const first = await OpenEnvClient.connect(server.url);
    await first.reset();
    await first.close();
    const second = await OpenEnvClient.connect(server.url);
    expect(await second.reset()).toMatchObject({ observation: 0 });
    await second.close();
    await expect(server.close()).rejects.toThrow(/<StuckCoin> threw in close: the door is stuck/);
  });

  it("answers a client with the error when a step returns nothing", async () => {
    const server = await serveEnv(() => makeBroken({ step: () => undefined }), { port: 0 });
    const client = await OpenEnvClient.connect(server.url);
    await client.reset();
    await expect(client.step(0)).rejects.toThrow(/EXECUTION_ERROR|step\(\) returned undefined/);
    await client.close();
    await server.close();
  });
});
