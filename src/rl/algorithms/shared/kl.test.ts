import { describe, expect, it } from "vitest";
import { perTokenKl, tokenRewards, approximateKl } from "./kl.js";
import { nextKlCoef } from "./kl-controller.js";

describe("perTokenKl", () => {
  it("is the log-ratio, its size or half its square", () => {
    const [logProbs, reference] = [
      [-1, -2],
      [-1.5, -1],
    ];
    expect([...perTokenKl("kl", logProbs, reference)]).toEqual([0.5, -1]);
    expect([...perTokenKl("abs", logProbs, reference)]).toEqual([0.5, 1]);
    expect([...perTokenKl("mse", logProbs, reference)]).toEqual([0.125, 0.5]);
  });
});

describe("tokenRewards", () => {
  it("subtracts a penalty at every token and adds each score at its turn's last", () => {
    const { rewards, nonScoreRewards } = tokenRewards([1, -2, 3], 0.5, [10, 20], [0, 2]);
    expect([...nonScoreRewards]).toEqual([-0.5, 1, -1.5]);
    expect([...rewards]).toEqual([9.5, 1, 18.5]);
  });
});

describe("nextKlCoef", () => {
  const settings = { adaptiveKl: true, klTarget: 6, klHorizon: 100 };

  it("raises the coefficient above the target and lowers it below, by a fifth per horizon at most", () => {
    expect(nextKlCoef(1, 600, 50, settings)).toBeCloseTo(1.1, 12);
    expect(nextKlCoef(1.1, -5, 50, settings)).toBeCloseTo(1.1 * 0.9, 12);
    expect(nextKlCoef(0.99, 6, 50, settings)).toBe(0.99);
  });

  it("keeps the coefficient when it is not adaptive", () => {
    expect(nextKlCoef(0.2, 100, 1000, { ...settings, adaptiveKl: false })).toBe(0.2);
  });
});

it("approximates the divergence by half the squared log ratio", () => {
  expect(approximateKl([1, Math.E, 1 / Math.E ** 2])).toBeCloseTo((0 + 0.5 + 2) / 3, 12);
  expect(approximateKl([])).toBe(0);
});
