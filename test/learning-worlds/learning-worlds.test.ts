import { describe, expect, it } from "vitest";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { BlackjackEnv, make, openEnv, register } from "../../src/envs.js";
import { readNewTextEnv } from "../../src/app/runs/make-text-agent.js";
import { resolveWarmStart } from "../../src/app/runs/resolve-warm-start.js";
import { RunEnv } from "../../src/app/runs/run-env.js";
import type { Demonstration } from "../../src/rl/data/read-demonstrations.js";
import { resolveTrainConfig } from "../../src/app/runs/run-settings.js";
import { checkEnv } from "../../src/testing.js";
import { randomAction } from "../../src/envs/random-action.js";
import { solveWorld } from "./solve-world.js";
import { defineWorld, end, go, uniform } from "./world.js";
import { WorldEnv } from "./world-env.js";
import { worlds } from "./worlds.js";

describe("the learning worlds", () => {
  it("are forty", () => {
    expect(new Set(worlds.map(({ id }) => id)).size).toBe(40);
  });

  it.each(worlds)("$id passes checkEnv, and random play earns what solveWorld computes", async (world) => {
    const { warnings } = await checkEnv(new WorldEnv(world));
    expect(warnings).toEqual([]);
    const { best, random } = solveWorld(world);
    expect(best).toBeGreaterThan(random);
    const returns = await playAtRandom(world.id, 300);
    const mean = returns.reduce((sum, each) => sum + each, 0) / returns.length;
    const deviation = Math.sqrt(returns.reduce((sum, each) => sum + (each - mean) ** 2, 0) / returns.length);
    expect(Math.abs(mean - random)).toBeLessThan((4 * deviation) / Math.sqrt(returns.length) + 1e-9);
  });
});

describe("a new run", () => {
  const read = async (env: string, onWarning: (message: string) => void = () => {}) =>
    readNewTextEnv(await openEnv(env), env, { seed: 0, callTimeoutSeconds: 5 }, onWarning);

  it.each([
    ["Flags-v0", "choices", 0],
    ["Tavern-v0", "choices", 0],
    ["Oven-v0", "choices", 0],
    ["Waiter-v0", "schema", 0],
    ["Animals-v0", "free", 0],
    ["Clinic-v0", "choices", 5],
  ])("in %s has the action mode %s and prompts with %i earlier turns", async (env, actionMode, historyTurns) => {
    const warnings: string[] = [];
    expect(await read(env, (warning) => void warnings.push(warning))).toMatchObject({ actionMode, historyTurns });
    expect(warnings).toEqual([]);
  });

  it.each([
    ["Unseeded-v0", false, 1],
    ["Open-v0", true, 0],
  ])("in %s, which ignores its seed, with nondeterministic %s has %i warnings", async (id, nondeterministic, count) => {
    class Unseeded extends BlackjackEnv {
      override reset() {
        return super.reset({ seed: Math.floor(2 ** 31 * Math.random()) });
      }
    }
    register({ id, entryPoint: () => new Unseeded(), nondeterministic });
    const warnings: string[] = [];
    await read(id, (warning) => void warnings.push(warning));
    expect(warnings).toHaveLength(count);
    expect(warnings.join()).toMatch(
      count === 0 ? "" : /two episodes with the same seed and actions differ.*Math\.random/,
    );
  });

  it.each([
    ["Flags-v0", {}, "random"],
    ["Waiter-v0", {}, "random"],
    ["Flags-v0", { turns: 1000 }, undefined],
    ["Flags-v0", { sftWarmStart: "none" }, "none"],
    ["Flags-v0", { model: "another" }, undefined],
    ["Animals-v0", {}, undefined],
  ])("in %s with %j has the warm start %s", async (env, options, sftWarmStart) => {
    const config = resolveTrainConfig({ env, ...options }, { envTraits: await read(env) });
    expect(config.sftWarmStart).toBe(sftWarmStart);
    const demonstrations = await resolveWarmStart(config, new RunEnv({ env }));
    const turns = Array.isArray(demonstrations)
      ? (demonstrations as Demonstration[]).flatMap((each) => each.turns)
      : [];
    expect(turns).toHaveLength(sftWarmStart === "random" ? 1024 : 0);
  });

  it("has a large entropy bonus where a schema lists all values", async () => {
    for (const [env, entropyCoef] of [
      ["Waiter-v0", 0.3],
      ["Animals-v0", 0.03],
    ] as const)
      expect(resolveTrainConfig({ env }, { envTraits: await read(env) })).toMatchObject({ entropyCoef });
  });

  it.each([
    ["Flags-v0", { turns: 196_608, batchSize: 4096, layersToTransform: "last-4", entropyCoef: 0.1 }],
    ["Waiter-v0", { turns: 196_608, batchSize: 4096, layersToTransform: "last-4", entropyCoef: 0.1 }],
    ["Scales-v0", { turns: 16_384, batchSize: 512, miniBatchSize: 128, layersToTransform: "last-4" }],
    ["Letters-v0", { turns: 16_384, batchSize: 512, miniBatchSize: 128, layersToTransform: "last-4" }],
    ["Animals-v0", { turns: undefined, entropyCoef: 0, layersToTransform: undefined }],
  ])("in %s a pretrained model has defaults for its prompts and completions", async (env, defaults) => {
    expect(resolveTrainConfig({ env, model: "another" }, { envTraits: await read(env) })).toMatchObject(defaults);
  });

  it("finds the history that an environment needs and does not declare", async () => {
    const { historyTurns: declared, ...parcel } = worlds.find(({ id }) => id === "Parcel-v0")!;
    const id = "UndeclaredParcel-v0";
    register({ id, entryPoint: () => new WorldEnv({ ...parcel, id }), maxEpisodeSteps: parcel.maxEpisodeSteps });
    expect((await read(id)).historyTurns).toBe(declared);
    const { warnings } = await checkEnv(make(id));
    expect(warnings.join("\n")).toMatch(/depends on an observation 3 turns earlier.*text\.historyTurns/);
  });
});

/** Returns of episodes of uniformly drawn actions, as of the action mode "choices". */
async function playAtRandom(id: string, episodes: number): Promise<readonly number[]> {
  const env = make(id);
  const draw = randomAction(env);
  const random = new RandomStream(1);
  const returns: number[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    let { observation, info } = await env.reset({ seed: episode });
    let sum = 0;
    for (let isOver = false; !isOver;) {
      const step = await env.step(draw(observation, random, info));
      ({ observation, info } = step);
      sum += step.reward;
      isOver = step.terminated || step.truncated;
    }
    returns.push(sum);
  }
  return returns;
}

describe("solveWorld", () => {
  const coin = defineWorld<number>({
    id: "Coin-v0",
    tests: "",
    systemPrompt: "",
    maxEpisodeSteps: 3,
    start: uniform([0, 1]),
    describe: (side, random) => `${random.random()} ${side}`,
    actions: () => ["heads", "tails", "toss"],
    step: (side, action) =>
      action === "toss"
        ? uniform([0, 1]).map(({ probability, state }) => go(state, -1, probability))
        : end(side, side === 0 && action === "heads" ? 3 : 0),
  });

  it("computes the best and the random return of a task with chance and a limit", () => {
    // Tossing again costs 1 and gains 1.5 at tails while a step remains.
    const last = 3 / 2;
    const second = (3 + Math.max(0, last - 1)) / 2;
    expect(solveWorld(coin).best).toBeCloseTo((3 + Math.max(0, second - 1)) / 2, 12);
  });

  it("gives a hidden state no more than its observations allow", () => {
    const hidden = { ...coin, describe: () => "a coin" };
    expect(solveWorld(hidden).best).toBeCloseTo(1.5, 12);
  });
});
