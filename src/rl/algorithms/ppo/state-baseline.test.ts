import { describe, expect, it } from "vitest";
import { ppoAdvantages } from "./advantages.js";
import { withStateBaselines } from "./state-baseline.js";

const row = (rewards: readonly number[], values: readonly number[], bootstrap = 0) => ({
  rewards,
  values,
  bootstrap: rewards.map((_, t) => (t === rewards.length - 1 ? bootstrap : 0)),
});
const lists = (rows: ReturnType<typeof withStateBaselines>) => rows.map(({ values }) => Array.from(values));

describe("withStateBaselines", () => {
  it("averages the value head's value with the returns of other steps in the state", () => {
    const rows = [row([1], [4]), row([2], [4]), row([6], [4])];
    const states = rows.map(() => ({ states: [7] }));
    expect(lists(withStateBaselines(rows, states, 1))).toEqual([[4], [11 / 3], [7 / 3]]);
  });

  it("keeps the value of a state that occurs once", () => {
    const rows = [row([1, 3], [4, 5]), row([2], [6])];
    expect(lists(withStateBaselines(rows, [{ states: [0, 1] }, { states: [2] }], 0.5))).toEqual([[4, 5], [6]]);
  });

  it("ends a partial sequence with the mean of its next state, and an ended one with 0", () => {
    const rows = [row([0], [0], 100), row([8], [0]), row([8], [0])];
    const [first, second] = withStateBaselines(rows, [{ states: [0], next: 1 }, { states: [1] }, { states: [1] }], 1);
    expect(Array.from(first.bootstrap!)).toEqual([(100 + 8 + 8) / 3]);
    expect(Array.from(second.bootstrap!)).toEqual([0]);
  });

  it("is the baseline of advantages, without the own return", () => {
    const samples = [1, 0, 1, 0].map((reward) => ({
      kls: [0],
      values: [50],
      turns: [{ end: 1, reward }],
      states: { states: [0] },
    }));
    const config = { gamma: 1, lam: 1, klCoef: 0, whitenRewards: false, whitenAdvantages: false } as const;
    const advantages = ppoAdvantages(samples, { ...config, advantageLevel: "turn", stateBaseline: true });
    const [won, lost] = advantages.map((each) => each.advantages[0]);
    expect([won, lost]).toEqual([1 - (50 + 1) / 4, 0 - (50 + 2) / 4]);
  });
});
