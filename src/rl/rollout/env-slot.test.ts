import type { EnvSlotState } from "./rollout-slot.js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { TrainableModels } from "../../../test/support/trainable.js";
import { CountingEnv, EvenOddAgent } from "../../../test/support/counting.js";
import type { Env } from "../../envs/env.js";
import type { LanguageModel } from "../../generation/index.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { RolloutCollector } from "./rollout-collector.js";
import { EnvSlot } from "./env-slot.js";
import type { Trajectory } from "./trajectory.js";

const models = new TrainableModels();
let model: LanguageModel;
let agent: EvenOddAgent;
beforeAll(async () => {
  model = await models.open({ maxPositions: 512, scale: 0.2 });
  agent = new EvenOddAgent(model, undefined, { historyTurns: Infinity });
});
afterAll(() => models.close());

function createSlot(
  env: Env<number, number> = new CountingEnv(),
  index = 0,
  share = false,
  callTimeoutSeconds = 60,
): EnvSlot {
  const random = new RandomStream(4, [index]);
  const settings = { spreadSparseRewards: share, callTimeoutSeconds };
  return new EnvSlot(env, {
    newEpisode: () => agent.newEpisode(random),
    random,
    settings,
    index,
    firstSeed: 100 + index,
  });
}

const createSlots = (count: number, options = {}) =>
  Array.from({ length: count }, (_, i) => createSlot(new CountingEnv(options), i));

/** The parts of a trajectory that a learner reads. */
const summarize = (segments: readonly Trajectory[]) =>
  segments.map(({ turns, end, bootstrapPrompt, group }) => ({
    end,
    bootstrapPrompt,
    group,
    turns: turns.map(({ prompt, tokens, logProbs, reward }) => ({ prompt, tokens, logProbs, reward })),
  }));

describe("collectTurns", () => {
  it("takes turns of all environments; unfinished episodes yield partial trajectories and continue", async () => {
    const collector = new RolloutCollector(createSlots(3, { length: 4 }));
    const first = await collector.collectTurns(6);
    expect(first.finishedEpisodes).toEqual([]);
    expect(first.trajectories.map(({ turns, end }) => [turns.length, end])).toEqual(
      [1, 2, 3].map(() => [2, "partial"]),
    );
    const second = await collector.collectTurns(7);
    expect(second.trajectories.map(({ turns, end }) => [turns.length, end])).toEqual([
      ...[1, 2, 3].map(() => [2, "terminated"]),
      ...[1, 2, 3].map(() => [1, "partial"]),
    ]);
    expect(second.finishedEpisodes.map(({ turns, end }) => [turns, end])).toEqual(
      [1, 2, 3].map(() => [4, "terminated"]),
    );
  });

  it("sets the bootstrap prompt of partial trajectories only", async () => {
    const collector = new RolloutCollector([createSlot()]);
    const [cut] = (await collector.collectTurns(1)).trajectories;
    const [rest] = (await collector.collectTurns(2)).trajectories;
    expect(cut.bootstrapPrompt).toEqual(rest.turns[0].prompt);
    const [end] = (await collector.collectTurns(1)).trajectories;
    expect(end).toMatchObject({ end: "terminated", bootstrapPrompt: undefined });
  });

  it("records the environment's rewards and their sum", async () => {
    const collector = new RolloutCollector([createSlot(new CountingEnv({ length: 3, reward: (step) => 10 ** step }))]);
    const { trajectories, finishedEpisodes } = await collector.collectTurns(3);
    expect(trajectories[0].turns.map(({ reward }) => reward)).toEqual([1, 10, 100]);
    expect(finishedEpisodes).toEqual([{ return: 111, turns: 3, end: "terminated" }]);
  });

  it("distinguishes truncated from terminated episodes", async () => {
    const collector = new RolloutCollector([createSlot(new CountingEnv({ length: 3, isTruncated: true }))]);
    const { trajectories, finishedEpisodes } = await collector.collectTurns(3);
    expect(finishedEpisodes[0].end).toBe("truncated");
    expect(trajectories[0].bootstrapPrompt!.slice(0, trajectories[0].turns[2].prompt.length)).toEqual(
      trajectories[0].turns[2].prompt,
    );
  });

  it("spreads a sparse reward if requested", async () => {
    const env = new CountingEnv({ length: 4, reward: (step) => (step === 3 ? 8 : 0) });
    const { trajectories } = await new RolloutCollector([createSlot(env, 0, true)]).collectTurns(4);
    expect(trajectories[0].turns.map(({ reward }) => reward)).toEqual([2, 2, 2, 2]);
  });

  it("reports progress after each round", async () => {
    const seen: [number, number][] = [];
    await new RolloutCollector(createSlots(2, { length: 2 })).collectTurns(8, {
      onProgress: (turns, ended) => seen.push([turns, ended.length]),
    });
    expect(seen).toEqual([
      [2, 0],
      [4, 2],
      [6, 0],
      [8, 2],
    ]);
  });

  it("returns the same turns for the same seeds, whatever the number of slots", async () => {
    const [alone] = (await new RolloutCollector([createSlot()]).collectTurns(4)).trajectories;
    const concurrent = (await new RolloutCollector(createSlots(5)).collectTurns(20)).trajectories;
    const [first] = concurrent;
    expect(first.turns.map(({ tokens }) => tokens)).toEqual(alone.turns.map(({ tokens }) => tokens));
  });
});

describe("collectEpisodes", () => {
  it("collects one episode per spec, in their order", async () => {
    const tasks = [5, 2, 9, 1, 7].map((seed, i) => ({ seed, group: i % 2 }));
    const lengthForSeed = (seed: number) => 1 + (seed % 4);
    const { trajectories, finishedEpisodes } = await new RolloutCollector(
      createSlots(2, { lengthForSeed }),
    ).collectEpisodes(tasks);
    expect(finishedEpisodes.map(({ turns }) => turns)).toEqual(tasks.map(({ seed }) => 1 + (seed % 4)));
    expect(trajectories.map(({ group }) => group)).toEqual([0, 1, 0, 1, 0]);
    expect(trajectories.map(({ turns }) => turns.length)).toEqual(finishedEpisodes.map(({ turns }) => turns));
  });

  it("returns the finished episodes when aborted", async () => {
    const stop = new AbortController();
    const tasks = Array.from({ length: 50 }, (_, seed) => ({ seed }));
    const { trajectories, finishedEpisodes } = await new RolloutCollector(createSlots(4)).collectEpisodes(tasks, {
      signal: stop.signal,
      onProgress: (_turns, ended) => {
        if (ended.length > 0) stop.abort();
      },
    });
    expect(finishedEpisodes.length).toBeGreaterThan(0);
    expect(finishedEpisodes.length).toBeLessThan(10);
    expect(trajectories.every(({ end }) => end === "terminated")).toBe(true);
  });
});

describe("an invalid environment", () => {
  const playWith = (step: (result: Record<string, unknown>) => unknown) => {
    const env = new CountingEnv();
    const original = env.step.bind(env);
    vi.spyOn(env, "step").mockImplementation((action) => step({ ...original(action) }) as never);
    return new RolloutCollector([createSlot(env)]).collectTurns(2);
  };

  it.each([
    ["an observation that is NaN", (result: object) => ({ ...result, observation: Number.NaN }), "NaN"],
    ["a reward that is NaN", (result: object) => ({ ...result, reward: Number.NaN }), "the reward NaN"],
    ["a reward that is a text", (result: object) => ({ ...result, reward: "1" }), "the reward 1 (string)"],
    ["no reward", (result: object) => ({ ...result, reward: undefined }), "the reward undefined"],
    ["no end", (result: object) => ({ ...result, terminated: undefined }), "returned no booleans for terminated"],
    ["nothing", () => undefined, "returned undefined from step"],
  ])("is named if it returns %s", async (_, step, message) => {
    await expect(playWith(step)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(new RegExp(`<CountingEnv>.*${message.replace(/[()]/g, "\\$&")}`)) as string,
    });
  });

  it("is named if it throws", async () => {
    const failed = playWith(() => {
      throw new RangeError("out of cards");
    });
    await expect(failed).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: "<CountingEnv> threw in step: out of cards",
    });
    const env = new CountingEnv();
    vi.spyOn(env, "reset").mockImplementation(() => {
      throw new Error("no table");
    });
    await expect(new RolloutCollector([createSlot(env)]).collectTurns(1)).rejects.toThrow("threw in reset: no table");
  });

  it("is named if it returns nothing from reset", async () => {
    const env = new CountingEnv();
    vi.spyOn(env, "reset").mockReturnValue(undefined as never);
    await expect(new RolloutCollector([createSlot(env)]).collectTurns(1)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: "<CountingEnv> returned undefined from reset; it must return { observation, info }.",
    });
  });

  it("is named with its slot if a promise of it never settles", async () => {
    const hang = () => new Promise<never>(() => {});
    for (const method of ["reset", "step"] as const) {
      const env = new CountingEnv();
      vi.spyOn(env, method).mockImplementation(hang as never);
      const slots = [createSlot(), createSlot(env, 1, false, 0.01)];
      await expect(new RolloutCollector(slots).collectTurns(4)).rejects.toMatchObject({
        code: "ENV_FAILED",
        message: expect.stringContaining(
          `\`${method}\` of <CountingEnv> (environment 1) did not settle within 0.01 s`,
        ) as string,
      });
    }
  });

  it("rejects only after the other environments have settled", async () => {
    const slow = new CountingEnv();
    const original = slow.step.bind(slow);
    let isStepping = false;
    vi.spyOn(slow, "step").mockImplementation((async (action: number) => {
      isStepping = true;
      await new Promise((resolve) => setTimeout(resolve, 20));
      isStepping = false;
      return original(action);
    }) as never);
    const broken = new CountingEnv();
    vi.spyOn(broken, "step").mockImplementation(() => {
      throw new Error("broken");
    });
    await expect(new RolloutCollector([createSlot(slow), createSlot(broken, 1)]).collectTurns(2)).rejects.toThrow(
      "broken",
    );
    expect(isStepping).toBe(false);
  });
});

describe("a saved collector", () => {
  const copyOf = (states: readonly EnvSlotState[]) => JSON.parse(JSON.stringify(states)) as EnvSlotState[];

  it("continues identically in the middle of episodes", async () => {
    const original = new RolloutCollector(createSlots(3, { length: 5 }));
    await original.collectTurns(9);
    const states = copyOf(original.getState());
    expect(states.every(({ episode }) => episode?.turns === 3)).toBe(true);
    const copy = new RolloutCollector(createSlots(3, { length: 5 }));
    copy.setState(states);
    expect(summarize((await copy.collectTurns(12)).trajectories)).toEqual(
      summarize((await original.collectTurns(12)).trajectories),
    );
  });

  it("does not save an environment that was never started, and uses no random numbers for it", async () => {
    const env = new CountingEnv();
    const random = vi.spyOn(env, "random", "get");
    const [state] = new RolloutCollector([createSlot(env)]).getState();
    expect(state).toMatchObject({ env: null, hasStarted: false, episode: null });
    expect(random).not.toHaveBeenCalled();
    const [fresh, restored] = [new RolloutCollector([createSlot()]), new RolloutCollector([createSlot()])];
    restored.setState(copyOf([state]));
    expect(summarize((await restored.collectTurns(4)).trajectories)).toEqual(
      summarize((await fresh.collectTurns(4)).trajectories),
    );
  });

  it("starts new episodes, not the first ones, if the environment does not support saving", async () => {
    const original = new RolloutCollector([createSlot(new CountingEnv({ isSaved: false }))]);
    const first = (await original.collectTurns(4)).trajectories;
    const states = copyOf(original.getState());
    expect(states[0]).toMatchObject({ env: null, hasStarted: true, episode: null });
    const resumed = () => {
      const env = new CountingEnv({ isSaved: false });
      const collector = new RolloutCollector([createSlot(env)]);
      collector.setState(states);
      return { env, collector };
    };
    const { env, collector } = resumed();
    const again = (await collector.collectTurns(4)).trajectories;
    expect(env.seeds).toHaveLength(1);
    expect(env.seeds[0]).not.toBe(100);
    expect(summarize(again)).not.toEqual(summarize(first));
    expect(summarize((await resumed().collector.collectTurns(4)).trajectories)).toEqual(summarize(again));
  });
});
