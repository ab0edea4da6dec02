import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import { Env, type EnvState, type ResetOptions, type StepResult } from "../env.js";
import { make } from "../registry/make.js";
import { Box } from "../spaces/box.js";
import { Discrete } from "../spaces/discrete.js";
import { Autoreset, OrderEnforcing, TimeAwareObservation, TimeLimit } from "./time.js";
import { ClipAction, RescaleAction, DiscretizeAction, RepeatAction, StickyAction, TransformAction } from "./action.js";
import { DelayObservation, FlattenObservation, FrameStackObservation, TransformObservation } from "./observation.js";
import { NormalizeObservation } from "./normalize-observation.js";
import { NormalizeReward, ClipReward, TransformReward } from "./reward.js";
import { RecordEpisode, type EpisodeRecording, RecordEpisodeStatistics } from "./record-episode.js";

type Float = Env<Float32Array, Float32Array>;

const cartPole = () => make<Float32Array, number>("CartPole-v1");
const pendulum = () => make<Float32Array, Float32Array>("Pendulum-v1");

/** Every wrapper around an environment that suits it. */
const wrapped: Readonly<Record<string, () => Env>> = {
  Autoreset: () => new Autoreset(cartPole()),
  ClipAction: () => new ClipAction(pendulum()),
  ClipReward: () => new ClipReward(pendulum(), { minReward: -1 }),
  DelayObservation: () => new DelayObservation(cartPole(), { delay: 3 }),
  DiscretizeAction: () => new DiscretizeAction(pendulum(), { bins: 5 }),
  FlattenObservation: () => new FlattenObservation(make("Taxi-v4")),
  FrameStackObservation: () => new FrameStackObservation(cartPole(), { stackSize: 3 }),
  NormalizeObservation: () => new NormalizeObservation(cartPole()),
  NormalizeReward: () => new NormalizeReward(pendulum()),
  OrderEnforcing: () => new OrderEnforcing(cartPole()),
  RecordEpisodeStatistics: () => new RecordEpisodeStatistics(cartPole()),
  RepeatAction: () => new RepeatAction(cartPole(), { numRepeats: 2 }),
  RescaleAction: () => new RescaleAction(pendulum(), { minAction: 0, maxAction: 1 }),
  StickyAction: () => new StickyAction(cartPole(), { repeatActionProbability: 0.5, repeatActionDuration: [1, 3] }),
  TimeAwareObservation: () => new TimeAwareObservation(cartPole()),
  TimeLimit: () => new TimeLimit(cartPole(), { maxEpisodeSteps: 9 }),
  TransformAction: () => new TransformAction<Float32Array, number>(cartPole(), { action: (action) => 1 - action }),
  TransformObservation: () =>
    new TransformObservation<Float32Array, number>(cartPole(), { observation: (x) => x.map((v) => v / 10) }),
  TransformReward: () => new TransformReward(pendulum(), { reward: (reward) => reward + 1 }),
};

async function runSteps(env: Env, steps: number): Promise<StepResult<unknown>[]> {
  const results: StepResult<unknown>[] = [];
  for (let i = 0; i < steps; i++) {
    const { info, ...result } = await env.step(env.actionSpace.sample());
    // Seconds differ from run to run.
    results.push({ ...result, info: "episode" in info ? { ...(info["episode"] as object), t: 0 } : info });
    if ((result.terminated || result.truncated) && !(env instanceof Autoreset)) await env.reset();
  }
  return results;
}

describe.each(Object.entries(wrapped))("%s", (_, create) => {
  it("returns observations in its space", async () => {
    const env = create();
    const { observation } = await env.reset({ seed: 1 });
    env.actionSpace.seed(1);
    const observations = [observation, ...(await runSteps(env, 40)).map((result) => result.observation)];
    expect(observations.filter((value) => !env.observationSpace.contains(value))).toEqual([]);
  });

  it("resumes exactly from a saved state", async () => {
    const env = create();
    await env.reset({ seed: 2 });
    env.actionSpace.seed(2);
    await runSteps(env, 7);
    const state = JSON.parse(JSON.stringify(env.getState())) as EnvState;
    env.actionSpace.seed(3);
    const expected = await runSteps(env, 60);
    const restored = create();
    restored.setState(state);
    restored.actionSpace.seed(3);
    expect(await runSteps(restored, 60)).toEqual(expected);
  });

  it("delegates everything else", async () => {
    const env = create();
    await env.reset({ seed: 5 });
    expect(env.randomSeed).toBe(5);
    expect(env.spec?.id).toBe(env.unwrapped.spec?.id);
    expect(typeof (await env.render("ansi"))).toBe("string");
    await env.close();
  });
});

/** Gives 1, 2, 3, ... as observation and reward, asynchronously; ends after four steps. */
class SlowCounter extends Env<number, number> {
  override readonly observationSpace = new Discrete(10);
  override readonly actionSpace = new Discrete(3);
  private count = 0;

  override async reset({ seed }: ResetOptions = {}) {
    this.reseed(seed);
    this.count = 0;
    return await Promise.resolve({ observation: 0, info: {} });
  }

  override async step() {
    this.count++;
    const { count } = this;
    return await Promise.resolve({
      observation: count,
      reward: count,
      terminated: count === 4,
      truncated: false,
      info: {},
    });
  }
}

describe("around an asynchronous environment", () => {
  it("wrappers that change results wait for them", async () => {
    const env = new RecordEpisodeStatistics(
      new TransformReward(new TimeLimit(new OrderEnforcing(new SlowCounter()), { maxEpisodeSteps: 3 }), {
        reward: (r) => 10 * r,
      }),
    );
    await env.reset();
    const results = [await env.step(0), await env.step(0), await env.step(0)];
    expect(results.map(({ reward, truncated }) => [reward, truncated])).toEqual([
      [10, false],
      [20, false],
      [30, true],
    ]);
    expect(results[2].info["episode"]).toMatchObject({ r: 60, l: 3 });
  });

  it("RepeatAction sums rewards and stops at the end", async () => {
    const env = new RepeatAction(new SlowCounter(), { numRepeats: 3 });
    await env.reset();
    expect(await env.step(0)).toMatchObject({ observation: 3, reward: 6, terminated: false });
    expect(await env.step(0)).toMatchObject({ observation: 4, reward: 4, terminated: true });
  });
});

describe("RecordEpisode", () => {
  it("passes whole episodes as JSON, with a frame of every state", async () => {
    const episodes: EpisodeRecording[] = [];
    const env = new RecordEpisode(make("Blackjack-v1"), {
      onEpisode: (episode) => episodes.push(episode),
      renderMode: "ansi",
    });
    await env.reset({ seed: 0 });
    await env.step(1);
    await env.step(0);
    await env.reset();
    await env.step(1);
    await env.close();
    expect(JSON.parse(JSON.stringify(episodes))).toEqual([
      {
        id: "Blackjack-v1",
        seed: "0",
        observation: [11, 10, 0],
        steps: [
          { action: 1, observation: [12, 10, 0], reward: 0, terminated: false, truncated: false },
          { action: 0, observation: [12, 10, 0], reward: -1, terminated: true, truncated: false },
        ],
        frames: [
          expect.stringContaining("Player: 11"),
          expect.stringContaining("Player: 12"),
          expect.stringContaining("Player: 12"),
        ],
      },
      expect.objectContaining({ id: "Blackjack-v1", steps: [expect.objectContaining({ action: 1 })] }),
    ]);
  });
});

describe("RecordEpisodeStatistics", () => {
  it("keeps the last episodes", async () => {
    const env = new RecordEpisodeStatistics(make("Blackjack-v1"), { bufferLength: 2, statsKey: "stats" });
    for (let i = 0; i < 3; i++) {
      await env.reset({ seed: i });
      const { info, reward } = await env.step(0);
      expect(info["stats"]).toMatchObject({ r: reward, l: 1 });
    }
    expect([env.episodes.length, env.episodeCount]).toEqual([2, 3]);
  });
});

describe("DiscretizeAction", () => {
  it("gives language models choices instead of numbers", () => {
    const env = new DiscretizeAction(pendulum(), { bins: 5 });
    expect(env.actionSpace.toString()).toBe("Discrete(5)");
    expect(env.text?.choices).toEqual(["-1.60", "-0.80", "+0.00", "+0.80", "+1.60"]);
    expect(env.text?.parseAction("about 0.7")).toBe(3);
    expect(env.action(4)).toEqual(Float32Array.of(1.6));
  });
});

describe("text interfaces", () => {
  it("are kept unless observations or actions change their meaning", () => {
    const has = (env: Env) => env.text !== undefined;
    expect(
      [wrapped["TimeLimit"](), wrapped["ClipReward"](), wrapped["DelayObservation"](), wrapped["StickyAction"]()].map(
        has,
      ),
    ).toEqual([true, true, true, true]);
    expect(
      [wrapped["NormalizeObservation"](), wrapped["RescaleAction"](), wrapped["TransformObservation"]()].map(has),
    ).toEqual([false, false, false]);
  });
});

describe("invalid arguments", () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      "no steps",
      () => new TimeLimit(cartPole(), { maxEpisodeSteps: 0 }),
      /`maxEpisodeSteps` must be an integer >= 1, got 0/,
    ],
    ["no bounds", () => new ClipReward(cartPole(), {}), /needs minReward, maxReward or both/],
    [
      "bounds in the wrong order",
      () => new ClipReward(cartPole(), { minReward: 2, maxReward: 1 }),
      /Min reward \(2\) must be smaller/,
    ],
    [
      "gamma above 1",
      () => new NormalizeReward(cartPole(), { gamma: 1.5 }),
      /`gamma` must be a number between 0 and 1, got 1.5/,
    ],
    ["epsilon 0", () => new NormalizeReward(cartPole(), { epsilon: 0 }), /`epsilon` must be a number > 0, got 0/],
    [
      "a discrete space where a box is needed",
      () => new ClipAction(cartPole() as unknown as Float),
      /ClipAction needs a Box action space, got Discrete\(2\)/,
    ],
    [
      "observations that are no box",
      () => new NormalizeObservation(make("Taxi-v4") as unknown as Float),
      /needs a Box observation space/,
    ],
    [
      "equal bounds",
      () => new RescaleAction(pendulum(), { minAction: 1, maxAction: 1 }),
      /must be smaller than the new maximum/,
    ],
    [
      "a negative delay",
      () => new DelayObservation(cartPole(), { delay: -1 }),
      /`delay` must be an integer >= 0, got -1/,
    ],
    [
      "an empty stack",
      () => new FrameStackObservation(cartPole(), { stackSize: 0 }),
      /`stackSize` must be an integer >= 1, got 0/,
    ],
    ["no step limit", () => new TimeAwareObservation(new SlowCounter()), /needs an environment with a step limit/],
    [
      "a probability above 1",
      () => new StickyAction(cartPole(), { repeatActionProbability: 2 }),
      /`repeatActionProbability` must be a number between 0 and 1, got 2/,
    ],
    [
      "no repeats",
      () => new RepeatAction(cartPole(), { numRepeats: 0 }),
      /`numRepeats` must be an integer >= 1, got 0/,
    ],
    ["no bins", () => new DiscretizeAction(pendulum(), { bins: 0 }), /bins must be a number above 0/],
    ["too many bins", () => new DiscretizeAction(pendulum(), { bins: [2, 3] }), /or 1 of them, got 2, 3/],
  ])("%s", (_, create, message) => {
    expect(create).toThrow(LlamaGymError);
    expect(create).toThrow(message);
  });

  it("TransformObservation takes another space", () => {
    const space = new Box(-100, 100, { shape: [1] });
    const env = new TransformObservation(cartPole(), {
      observation: ([x]) => Float32Array.of(100 * x),
      observationSpace: space,
    });
    expect(env.observationSpace).toBe(space);
  });
});
