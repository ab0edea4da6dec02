import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { TrainableModels } from "../../test/support/trainable.js";
import { CountingEnv, Follower } from "../../test/support/counting.js";
import type { Env } from "../envs/env.js";
import type { LanguageModel } from "../generation/index.js";
import { RandomStream } from "../tensor/random.js";
import { Collector } from "./collector.js";
import { Seat, type SeatState } from "./seat.js";
import type { Segment } from "./turn.js";

const models = new TrainableModels();
let model: LanguageModel;
let agent: Follower;
beforeAll(async () => {
  model = await models.open({ maxPositions: 512, scale: 0.2 });
  agent = new Follower(model);
});
afterAll(() => models.close());

function seat(env: Env<number, number> = new CountingEnv(), index = 0, share = false): Seat {
  const random = new RandomStream(4, [index]);
  return new Seat(env, () => agent.playthrough(random), random, 100 + index, share);
}

const seats = (count: number, options = {}) =>
  Array.from({ length: count }, (_, i) => seat(new CountingEnv(options), i));

/** What of a segment a learner reads. */
const facts = (segments: readonly Segment[]) =>
  segments.map(({ turns, end, nextPrompt, group }) => ({
    end,
    nextPrompt,
    group,
    turns: turns.map(({ prompt, tokens, logProbs, reward }) => ({ prompt, tokens, logProbs, reward })),
  }));

describe("turns", () => {
  it("come from all environments alike; episodes that are under way are cut and go on", async () => {
    const collector = new Collector(seats(3, { length: 4 }));
    const first = await collector.turns(6);
    expect(first.episodes).toEqual([]);
    expect(first.segments.map(({ turns, end }) => [turns.length, end])).toEqual([1, 2, 3].map(() => [2, "cut"]));
    const second = await collector.turns(7);
    expect(second.segments.map(({ turns, end }) => [turns.length, end])).toEqual([
      ...[1, 2, 3].map(() => [2, "terminated"]),
      ...[1, 2, 3].map(() => [1, "cut"]),
    ]);
    expect(second.episodes.map(({ turns, end }) => [turns, end])).toEqual([1, 2, 3].map(() => [4, "terminated"]));
  });

  it("know what comes next where they are cut, and nothing where an episode has ended", async () => {
    const collector = new Collector([seat()]);
    const [cut] = (await collector.turns(1)).segments;
    const [rest] = (await collector.turns(2)).segments;
    expect(cut.nextPrompt).toEqual(rest.turns[0].prompt);
    const [end] = (await collector.turns(1)).segments;
    expect(end).toMatchObject({ end: "terminated", nextPrompt: undefined });
  });

  it("have the environment's rewards, and episodes their sum", async () => {
    const collector = new Collector([seat(new CountingEnv({ length: 3, reward: (step) => 10 ** step }))]);
    const { segments, episodes } = await collector.turns(3);
    expect(segments[0].turns.map(({ reward }) => reward)).toEqual([1, 10, 100]);
    expect(episodes).toEqual([{ return: 111, turns: 3, end: "terminated" }]);
  });

  it("tell an episode that was stopped from one that ended", async () => {
    const collector = new Collector([seat(new CountingEnv({ length: 3, isTruncated: true }))]);
    const { segments, episodes } = await collector.turns(3);
    expect(episodes[0].end).toBe("truncated");
    expect(segments[0].nextPrompt!.slice(0, segments[0].turns[2].prompt.length)).toEqual(segments[0].turns[2].prompt);
  });

  it("share a reward that comes at the end where the agent asks for it", async () => {
    const env = new CountingEnv({ length: 4, reward: (step) => (step === 3 ? 8 : 0) });
    const { segments } = await new Collector([seat(env, 0, true)]).turns(4);
    expect(segments[0].turns.map(({ reward }) => reward)).toEqual([2, 2, 2, 2]);
  });

  it("are told while they are played", async () => {
    const seen: [number, number][] = [];
    await new Collector(seats(2, { length: 2 })).turns(8, {
      onRound: (turns, ended) => seen.push([turns, ended.length]),
    });
    expect(seen).toEqual([
      [2, 0],
      [4, 2],
      [6, 0],
      [8, 2],
    ]);
  });

  it("depend on the seeds alone, not on how many play beside", async () => {
    const [alone] = (await new Collector([seat()]).turns(4)).segments;
    const beside = (await new Collector(seats(5)).turns(20)).segments;
    const [first] = beside;
    expect(first.turns.map(({ tokens }) => tokens)).toEqual(alone.turns.map(({ tokens }) => tokens));
  });
});

describe("episodes", () => {
  it("are played once for each task, whoever is free, and given in the tasks' order", async () => {
    const tasks = [5, 2, 9, 1, 7].map((seed, i) => ({ seed, group: i % 2 }));
    const lengthOf = (seed: number) => 1 + (seed % 4);
    const { segments, episodes } = await new Collector(seats(2, { lengthOf })).episodes(tasks);
    expect(episodes.map(({ turns }) => turns)).toEqual(tasks.map(({ seed }) => 1 + (seed % 4)));
    expect(segments.map(({ group }) => group)).toEqual([0, 1, 0, 1, 0]);
    expect(segments.map(({ turns }) => turns.length)).toEqual(episodes.map(({ turns }) => turns));
  });

  it("end early with a signal, with those that are whole", async () => {
    const stop = new AbortController();
    const tasks = Array.from({ length: 50 }, (_, seed) => ({ seed }));
    const { segments, episodes } = await new Collector(seats(4)).episodes(tasks, {
      signal: stop.signal,
      onRound: (_turns, ended) => {
        if (ended.length > 0) stop.abort();
      },
    });
    expect(episodes.length).toBeGreaterThan(0);
    expect(episodes.length).toBeLessThan(10);
    expect(segments.every(({ end }) => end === "terminated")).toBe(true);
  });
});

describe("an environment that fails", () => {
  const playWith = (step: (result: Record<string, unknown>) => unknown) => {
    const env = new CountingEnv();
    const original = env.step.bind(env);
    vi.spyOn(env, "step").mockImplementation((action) => step({ ...original(action) }) as never);
    return new Collector([seat(env)]).turns(2);
  };

  it.each([
    ["an observation that is NaN", (result: object) => ({ ...result, observation: Number.NaN }), "NaN"],
    ["a reward that is NaN", (result: object) => ({ ...result, reward: Number.NaN }), "the reward NaN"],
    ["a reward that is a text", (result: object) => ({ ...result, reward: "1" }), "the reward 1 (string)"],
    ["no reward", (result: object) => ({ ...result, reward: undefined }), "the reward undefined"],
    ["no end", (result: object) => ({ ...result, terminated: undefined }), "true or false for terminated"],
    ["nothing", () => undefined, "gave undefined for a step"],
  ])("is named when it gives %s", async (_, step, message) => {
    await expect(playWith(step)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(new RegExp(`<CountingEnv>.*${message.replace(/[()]/g, "\\$&")}`)) as string,
    });
  });

  it("is named when it throws", async () => {
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
    await expect(new Collector([seat(env)]).turns(1)).rejects.toThrow("threw in reset: no table");
  });

  it("leaves no other one under way", async () => {
    const slow = new CountingEnv();
    const original = slow.step.bind(slow);
    let isUnderWay = false;
    vi.spyOn(slow, "step").mockImplementation((async (action: number) => {
      isUnderWay = true;
      await new Promise((resolve) => setTimeout(resolve, 20));
      isUnderWay = false;
      return original(action);
    }) as never);
    const broken = new CountingEnv();
    vi.spyOn(broken, "step").mockImplementation(() => {
      throw new Error("broken");
    });
    await expect(new Collector([seat(slow), seat(broken, 1)]).turns(2)).rejects.toThrow("broken");
    expect(isUnderWay).toBe(false);
  });
});

describe("saved seats", () => {
  const copyOf = (states: readonly SeatState[]) => JSON.parse(JSON.stringify(states)) as SeatState[];

  it("go on as if they had not stopped, with conversations under way", async () => {
    const original = new Collector(seats(3, { length: 5 }));
    await original.turns(9);
    const states = copyOf(original.getState());
    expect(states.every(({ episode }) => episode?.turns === 3)).toBe(true);
    const copy = new Collector(seats(3, { length: 5 }));
    copy.setState(states);
    expect(facts((await copy.turns(12)).segments)).toEqual(facts((await original.turns(12)).segments));
  });

  it("say nothing of an environment that was never started, and draw nothing from chance for it", async () => {
    const env = new CountingEnv();
    const random = vi.spyOn(env, "random", "get");
    const [state] = new Collector([seat(env)]).getState();
    expect(state).toMatchObject({ env: null, hasStarted: false, episode: null });
    expect(random).not.toHaveBeenCalled();
    const [fresh, restored] = [new Collector([seat()]), new Collector([seat()])];
    restored.setState(copyOf([state]));
    expect(facts((await restored.turns(4)).segments)).toEqual(facts((await fresh.turns(4)).segments));
  });

  it("begin new episodes, not the first ones again, where the environment cannot be saved", async () => {
    const original = new Collector([seat(new CountingEnv({ isSaved: false }))]);
    const first = (await original.turns(4)).segments;
    const states = copyOf(original.getState());
    expect(states[0]).toMatchObject({ env: null, hasStarted: true, episode: null });
    const resumed = () => {
      const env = new CountingEnv({ isSaved: false });
      const collector = new Collector([seat(env)]);
      collector.setState(states);
      return { env, collector };
    };
    const { env, collector } = resumed();
    const again = (await collector.turns(4)).segments;
    expect(env.seeds).toHaveLength(1);
    expect(env.seeds[0]).not.toBe(100);
    expect(facts(again)).not.toEqual(facts(first));
    expect(facts((await resumed().collector.turns(4)).segments)).toEqual(facts(again));
  });
});
