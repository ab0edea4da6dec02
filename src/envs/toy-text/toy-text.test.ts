import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import { make } from "../registry/make.js";
import { BlackjackEnv } from "./blackjack.js";
import { CliffWalkingEnv } from "./cliff-walking.js";
import { FrozenLakeEnv } from "./frozen-lake.js";
import { generateRandomMap } from "./frozen-lake-map.js";
import { TaxiEnv } from "./taxi.js";
import { decodeState, encodeState, NUM_TAXI_STATES, getActionMask } from "./grids.js";

describe("tables of transitions", () => {
  it.each([
    ["FrozenLake", new FrozenLakeEnv({ mapName: "8x8", successRate: 0.6 })],
    ["CliffWalking", new CliffWalkingEnv({ isSlippery: true })],
    ["Taxi", new TaxiEnv({ isRainy: true })],
  ])("have outcomes whose probabilities sum to 1: %s", (_, env) => {
    const sums = env.transitions
      .flat()
      .map((outcomes) => outcomes.reduce((sum, { probability }) => sum + probability, 0));
    expect(Math.max(...sums.map((sum) => Math.abs(sum - 1)))).toBeLessThan(1e-12);
    expect(env.initialDistribution.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 12);
  });
});

describe("FrozenLake", () => {
  it.each<[string, object, RegExp]>([
    ["rows of different length", { desc: ["SFG", "FF"] }, /rows of desc differ in length/],
    ["an unknown letter", { desc: ["SXG"] }, /unknown letter "X"/],
    ["no start", { desc: ["FFG"] }, /no start \(S\)/],
    ["no goal", { desc: ["SFF"] }, /no goal \(G\)/],
    ["no rows", { desc: [] }, /must be a list of strings/],
    ["something else", { desc: "SFFG" }, /must be a list of strings/],
    ["an unknown name", { mapName: "5x5" }, /no map "5x5". Its maps: 4x4, 8x8/],
    ["a rate above 1", { successRate: 1.5 }, /successRate must be between 0 and 1, got 1.5/],
    ["a schedule of two", { rewardSchedule: [1, 0] }, /rewardSchedule must be three numbers/],
    ["a text for a flag", { isSlippery: "yes" }, /isSlippery must be a boolean, got "yes"/],
  ])("rejects an invalid map or rule: %s", (_, options, message) => {
    expect(() => new FrozenLakeEnv(options)).toThrow(LlamaGymError);
    expect(() => new FrozenLakeEnv(options)).toThrow(message);
  });

  it("starts at one of several starts, and rewards by its schedule", () => {
    const env = new FrozenLakeEnv({ desc: ["SGS", "HFF"], isSlippery: false, rewardSchedule: [10, -5, -1] });
    const starts = new Set(Array.from({ length: 30 }, (_, seed) => env.reset({ seed }).observation));
    expect(starts).toEqual(new Set([0, 2]));
    const outcome = (state: number, action: number) => env.transitions[state][action][0];
    expect([outcome(0, 2), outcome(0, 1), outcome(0, 0)].map(({ reward, terminated }) => [reward, terminated])).toEqual(
      [
        [10, true],
        [-5, true],
        [-1, false],
      ],
    );
  });

  it("generates a random map when its name is null", () => {
    expect(new FrozenLakeEnv({ mapName: null }).desc.length).toBe(8);
  });
});

describe("generateRandomMap", () => {
  it.each<[string, () => unknown, RegExp]>([
    ["too small", () => generateRandomMap(1), /size must be an integer from 2 to 256/],
    ["no probability", () => generateRandomMap(4, 0), /probability must be above 0/],
  ])("rejects: %s", (_, call, message) => {
    expect(call).toThrow(message);
  });

  it("treats a probability above 1 as 1", () => {
    expect(generateRandomMap(3, 2, 1)).toEqual(["SFF", "FFF", "FFG"]);
  });
});

describe("Blackjack", () => {
  /** An environment in a hand of one's choice; the stream decides what comes next. */
  function dealt(player: number[], dealer: number[], options = {}): BlackjackEnv {
    const env = new BlackjackEnv(options);
    env.reset({ seed: 1 });
    env.setState({ ...env.getState(), state: { player, dealer, openCard: "5H" } });
    return env;
  }

  it.each<[string, number[], number[], object, number]>([
    ["a natural beats 21 of three cards by Sutton and Barto", [1, 10], [10, 6, 5], { sab: true }, 1],
    ["a natural draws with a natural", [1, 10], [10, 1], { sab: true }, 0],
    ["a natural pays 1.5 when asked for", [1, 10], [10, 10], { natural: true }, 1.5],
    ["a natural that draws pays nothing", [1, 10], [10, 1], { natural: true }, 0],
    ["21 of three cards is no natural", [10, 5, 6], [10, 10], { natural: true }, 1],
    ["Sutton and Barto's rules go before natural pay", [1, 10], [10, 9], { sab: true, natural: true }, 1],
    ["the higher sum wins", [10, 9], [10, 8], {}, 1],
    ["the lower sum loses", [10, 7], [10, 8], {}, -1],
    ["an ace counts 11 where it fits", [1, 8], [10, 8], {}, 1],
    ["an ace counts 1 where 11 is too much", [1, 8, 9], [10, 9], {}, -1],
  ])("%s", (_, player, dealer, options, reward) => {
    expect(dealt(player, dealer, options).step(0)).toMatchObject({ reward, terminated: true });
  });

  it("is lost beyond 21", () => {
    expect(dealt([10, 9, 2], [5, 5]).step(1)).toMatchObject({ reward: -1, terminated: true });
  });
});

describe("Taxi", () => {
  it("numbers its states as Gymnasium does", () => {
    expect(encodeState({ row: 3, column: 1, passenger: 2, destination: 0 })).toBe(328);
    const states = Array.from({ length: NUM_TAXI_STATES }, (_, state) => encodeState(decodeState(state)));
    expect(states).toEqual(Array.from({ length: NUM_TAXI_STATES }, (_, state) => state));
  });

  it("masks exactly the actions that leave the state unchanged", () => {
    const { transitions } = new TaxiEnv();
    for (let state = 0; state < NUM_TAXI_STATES; state++) {
      const changes = transitions[state].map(([outcome]) => (outcome.state === state ? 0 : 1));
      expect([...getActionMask(state)].map((flag, action) => flag || changes[action])).toEqual([
        ...getActionMask(state),
      ]);
    }
  });

  it("returns a new mask every time", async () => {
    const env = make("Taxi-v4");
    const { info } = await env.reset({ seed: 1 });
    (info["actionMask"] as Int8Array).fill(9);
    expect((await env.reset({ seed: 1 })).info["actionMask"]).not.toContain(9);
  });

  it.each([{ rainyProbability: 2 }, { fickleProbability: -1 }, { isRainy: 1 }, { rain: true }])(
    "rejects %j",
    (options) => {
      expect(() => new TaxiEnv(options as object)).toThrow(LlamaGymError);
    },
  );
});
