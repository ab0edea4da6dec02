import { describe, expect, it } from "vitest";
import { mean, variance } from "../shared/statistics.js";
import { ppoAdvantages, type ScoredSample } from "./advantages.js";

const plain = { gamma: 1, lam: 1, klCoef: 0, whitenRewards: false, whitenAdvantages: false } as const;

/** Two turns, of two tokens and one. */
const sample: ScoredSample = {
  kls: [0.5, 1, -2],
  values: [1, 2, 3],
  turns: [
    { end: 2, reward: 10 },
    { end: 3, reward: 100 },
  ],
};

describe("advantages at the token level", () => {
  it("are returns minus values", () => {
    const [row] = ppoAdvantages([sample], { ...plain, advantageLevel: "token" });
    expect([...row.returns]).toEqual([110, 110, 100]);
    expect([...row.advantages]).toEqual([109, 108, 97]);
  });

  it("include a KL penalty at every token", () => {
    const [row] = ppoAdvantages([sample], { ...plain, klCoef: 2, advantageLevel: "token" });
    expect([...row.nonScoreRewards]).toEqual([-1, -2, 4]);
    expect([...row.rewards]).toEqual([-1, 8, 104]);
    expect([...row.returns]).toEqual([111, 112, 104]);
  });

  it("bootstrap from the value after a partial sample", () => {
    const [row] = ppoAdvantages([{ ...sample, bootstrap: 1000 }], { ...plain, gamma: 0.5, advantageLevel: "token" });
    expect(row.returns[2]).toBe(100 + 500);
  });
});

describe("advantages at the turn level", () => {
  it("are discounted by turn and shared by a turn's tokens", () => {
    const settings = { ...plain, gamma: 0.5, lam: 0.5, klCoef: 2, advantageLevel: "turn" } as const;
    const [row] = ppoAdvantages([{ ...sample, bootstrap: 8 }], settings);
    // Turn rewards 10 - 3 and 100 + 4; values before them 1 and 3.
    const second = 104 + 0.5 * 8 - 3;
    const first = 7 + 0.5 * 3 - 1 + 0.25 * second;
    expect([...row.advantages]).toEqual([first, first, second]);
    expect([...row.returns]).toEqual([first + 1, first + 1, second + 3]);
  });
});

describe("a state baseline", () => {
  it("averages the value head's value with the returns of the same prompt elsewhere in the batch", () => {
    const one = (value: number, reward: number, state: number): ScoredSample => ({
      kls: [0],
      values: [value],
      turns: [{ end: 1, reward }],
      states: { states: [state] },
    });
    const samples = [one(1, 4, 0), one(3, 8, 0), one(5, 6, 1)];
    const config = { ...plain, advantageLevel: "turn" } as const;
    const advantagesOf = (stateBaseline: boolean) =>
      ppoAdvantages(samples, { ...config, stateBaseline }).map(({ advantages: [advantage] }) => advantage);
    expect(advantagesOf(true)).toEqual([4 - (1 + 8) / 2, 8 - (3 + 4) / 2, 6 - 5]);
    expect(advantagesOf(false)).toEqual([4 - 1, 8 - 3, 6 - 5]);
  });
});

describe("whitening", () => {
  it("divides rewards by their deviation and keeps their mean, if configured", () => {
    const other = { ...sample, turns: [{ end: 3, reward: 7 }] };
    const samples = [sample, other];
    const rewards = [0, 10, 100, 0, 0, 7];
    const center = mean(rewards);
    const scale = 1 / Math.sqrt(variance(rewards) + 1e-8);
    const scaled = rewards.map((reward) => center + (reward - center) * scale);
    const found = ppoAdvantages(samples, { ...plain, gamma: 0, whitenRewards: true, advantageLevel: "token" });
    expect(found.flatMap(({ returns }) => [...returns])).toEqual(
      scaled.map((value) => expect.closeTo(value, 9) as number),
    );
  });

  it("does not enlarge advantages that are small next to returns", () => {
    const config = { ...plain, whitenAdvantages: true, advantageLevel: "token" } as const;
    const samples = [sample, { ...sample, values: [109, 111, 101] }];
    const spread = (minAdvantageStd: number) =>
      Math.sqrt(variance(ppoAdvantages(samples, { ...config, minAdvantageStd }).flatMap((row) => [...row.advantages])));
    const returns = Math.sqrt((110 ** 2 + 110 ** 2 + 100 ** 2) / 3);
    const std = Math.sqrt(variance([109, 108, 97, 1, -1, -1]));
    expect(spread(0.1)).toBeCloseTo(1, 6);
    expect(spread(0.9)).toBeCloseTo(std / (0.9 * returns), 6);
  });

  it.each(["token", "turn"] as const)("covers all tokens of the batch (%s)", (advantageLevel) => {
    const samples = [sample, { ...sample, values: [-4, 2, 0] }];
    const before = ppoAdvantages(samples, { ...plain, advantageLevel });
    const after = ppoAdvantages(samples, { ...plain, whitenAdvantages: true, advantageLevel });
    const all = after.flatMap(({ advantages }) => [...advantages]);
    expect(mean(all)).toBeCloseTo(0, 12);
    expect(variance(all)).toBeCloseTo(1, 6);
    expect(after.map(({ returns }) => returns)).toEqual(before.map(({ returns }) => returns));
  });
});

it("refuses turns that do not divide the tokens", () => {
  const wrong = (turns: ScoredSample["turns"]) => () =>
    ppoAdvantages([sample, { ...sample, turns }], { ...plain, advantageLevel: "token" });
  for (const turns of [
    [],
    [{ end: 2, reward: 1 }],
    [
      { end: 3, reward: 0 },
      { end: 3, reward: 1 },
    ],
  ]) {
    expect(wrong(turns)).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining("sample 1") as string }),
    );
  }
});
