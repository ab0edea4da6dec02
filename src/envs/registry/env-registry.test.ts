import { describe, expect, it } from "vitest";
import { getErrorMessage } from "../../../test/support/error-message.js";
import { CartPoleEnv } from "../classic-control/cart-pole.js";
import type { Env } from "../env.js";
import { TimeLimit } from "../wrappers/time.js";
import { formatEnvId, parseEnvId, EnvRegistry } from "./env-registry.js";
import { GameEnv, Nim } from "../games/index.js";
import { make, registry } from "./make.js";
import { findNearestName } from "../../core/suggest.js";

const entryPoint = () => new CartPoleEnv();

describe("ids", () => {
  it.each([
    ["CartPole-v1", { namespace: undefined, name: "CartPole", version: 1 }],
    ["mine/Grid-World-v12", { namespace: "mine", name: "Grid-World", version: 12 }],
    ["Walk", { namespace: undefined, name: "Walk", version: undefined }],
    ["Walk-v", { namespace: undefined, name: "Walk-v", version: undefined }],
  ])("%s is parsed into its parts and formatted again", (id, parts) => {
    expect(parseEnvId(id)).toEqual(parts);
    expect(formatEnvId(parts)).toBe(id);
  });

  it.each(["", "a b-v1", "a/b/c-v1", "-v1 ", "CartPole v1"])("%j is malformed", (id) => {
    expect(getErrorMessage(() => parseEnvId(id))).toMatch(/INVALID_ARGUMENT: Malformed environment ID/);
  });
});

describe("an unknown id", () => {
  const own = new EnvRegistry([
    { id: "mine/Walk-v0", entryPoint },
    { id: "mine/Walk-v2", entryPoint },
    { id: "Plain", entryPoint },
  ]);

  it.each([
    ["Pendulun-v1", registry, "Environment `Pendulun` doesn't exist. Did you mean: `Pendulum`?"],
    ["cartpole-v1", registry, "Environment `cartpole` doesn't exist. Did you mean: `CartPole`?"],
    ["Xyz-v1", registry, "Environment `Xyz` doesn't exist. `llamagym envs` lists the registered ones."],
    [
      "Taxi-v9",
      registry,
      "Environment version `v9` for environment `Taxi` doesn't exist. It provides versioned environments: [ `v4` ].",
    ],
    ["mine/Walk-v1", own, "Environment version v1 for `mine/Walk` is deprecated. Please use `mine/Walk-v2` instead."],
    ["mine/Wolk-v1", own, "Environment `Wolk` doesn't exist in namespace mine. Did you mean: `Walk`?"],
    ["mime/Walk-v2", own, "Namespace mime not found. Did you mean: `mine`?"],
    ["yours/Walk-v2", own, "Namespace yours not found. Did you import the module that registers yours?"],
    [
      "Plain-v1",
      own,
      "Environment version `v1` for environment `Plain` doesn't exist. It provides the default version `Plain`.",
    ],
  ])("%s is rejected with the nearest name or the existing versions", (id, where, message) => {
    expect(getErrorMessage(() => where.spec(id))).toBe(`ENV_UNKNOWN: ${message}`);
  });

  it("without a version resolves to the latest one", () => {
    expect(own.spec("mine/Walk").id).toBe("mine/Walk-v2");
    expect(make("CartPole").spec?.id).toBe("CartPole-v1");
  });
});

describe("register", () => {
  it("rejects a name with and without version, and an invalid entry point", () => {
    const own = new EnvRegistry([{ id: "Walk-v0", entryPoint }]);
    expect(getErrorMessage(() => own.register({ id: "Walk", entryPoint }))).toMatch(
      /Can't register the unversioned environment `Walk`/,
    );
    const text = "./walk.js" as unknown as () => Env;
    expect(getErrorMessage(() => own.register({ id: "Run-v0", entryPoint: text }))).toMatch(
      /entryPoint must be an Env class or a function/,
    );
  });
});

describe("make", () => {
  it("wraps the environment with its step limit, order and checks", () => {
    expect(make("CartPole-v1").toString()).toBe(
      "<TimeLimit<OrderEnforcing<PassiveEnvChecker<CartPoleEnv<CartPole-v1>>>>>",
    );
    expect(make("CartPole-v1", { disableEnvChecker: true, maxEpisodeSteps: Infinity }).toString()).toBe(
      "<OrderEnforcing<CartPoleEnv<CartPole-v1>>>",
    );
  });

  it("overrides the registered limit and options, and keeps them in the spec", () => {
    const env = make("Blackjack-v1", { natural: true, sab: false, maxEpisodeSteps: 3 });
    expect(env).toBeInstanceOf(TimeLimit);
    expect(env.spec).toMatchObject({ maxEpisodeSteps: 3, options: { natural: true, sab: false } });
    expect(make(env.spec ?? "").toString()).toBe(env.toString());
    expect(registry.spec("Blackjack-v1")).toMatchObject({ maxEpisodeSteps: undefined, options: { sab: true } });
  });

  it("takes a class, which must extend Env, and no asynchronous entry point", () => {
    const own = new EnvRegistry([{ id: "Pole-v0", entryPoint: CartPoleEnv }]);
    expect(make(own.spec("Pole-v0")).unwrapped).toBeInstanceOf(CartPoleEnv);
    class Plain {
      reset = () => 0;
    }
    expect(
      getErrorMessage(() => own.register({ id: "Plain-v0", entryPoint: Plain as unknown as typeof CartPoleEnv })),
    ).toMatch(
      /ENV_INVALID: The entry point of Plain-v0 is a class that does not extend llamagym's Env. Write `class Plain extends Env`/,
    );
    const later = async () => Promise.resolve(new CartPoleEnv());
    own.register({ id: "Later-v0", entryPoint: later as unknown as typeof CartPoleEnv });
    expect(getErrorMessage(() => make(own.spec("Later-v0")))).toMatch(/The entry point of Later-v0 is asynchronous/);
  });

  it("takes a class of games, whose environment has an opponent and a seat", async () => {
    const own = new EnvRegistry([{ id: "Heap-v0", entryPoint: Nim, options: { piles: [1, 2] } }]);
    const env = make(own.spec("Heap-v0"), { opponent: "minimax", seat: 1 });
    const { info } = await env.reset({ seed: 1 });
    expect(env.unwrapped).toBeInstanceOf(GameEnv);
    expect(info).toMatchObject({ seat: 1 });
    expect(getErrorMessage(() => make(own.spec("Heap-v0"), { opponent: "best" }))).toMatch(
      /option opponent must be "random", "minimax" or a function/,
    );
  });

  it("rejects an entry point that returns no environment", () => {
    const spec = { ...registry.spec("CartPole-v1"), entryPoint: () => ({}) as Env };
    expect(getErrorMessage(() => make(spec))).toMatch(
      /ENV_INVALID: The entry point of CartPole-v1 did not return an Env/,
    );
  });
});

describe("findNearestName", () => {
  it.each([
    ["CartPol", "CartPole"],
    ["frozen-lake", "FrozenLake"],
    ["Hopper", undefined],
  ])("of %s is %s", (name, expected) => {
    expect(findNearestName(name, ["CartPole", "FrozenLake", "Taxi"])).toBe(expected);
  });
});
