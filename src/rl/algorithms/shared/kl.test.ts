import { describe, expect, it } from "vitest";
import { fullKl, perTokenKl, tokenRewards, approximateKl } from "./kl.js";
import { AdaptiveKlController, createKlController } from "./kl-controller.js";

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

describe("fullKl", () => {
  it("is the divergence of two coins, token by token", () => {
    const coin = (heads: number) => [Math.log(heads), Math.log(1 - heads)];
    const kl = (p: number, q: number) => p * Math.log(p / q) + (1 - p) * Math.log((1 - p) / (1 - q));
    const found = fullKl([...coin(0.5), ...coin(0.9)], [...coin(0.8), ...coin(0.9)], 2);
    expect(found[0]).toBeCloseTo(kl(0.5, 0.8), 12);
    expect(found[1]).toBeCloseTo(0, 12);
  });
});

describe("tokenRewards", () => {
  it("takes the penalty from every token and adds each score at its turn's last", () => {
    const { rewards, nonScoreRewards } = tokenRewards([1, -2, 3], 0.5, [10, 20], [0, 2]);
    expect([...nonScoreRewards]).toEqual([-0.5, 1, -1.5]);
    expect([...rewards]).toEqual([9.5, 1, 18.5]);
  });
});

const SETTINGS = { adaptiveKl: true, initKlCoef: 0.2, klTarget: 6, klHorizon: 10_000 };

describe("KL controllers", () => {
  it("raise the coefficient above the target and lower it below, by a fifth at most", () => {
    const controller = new AdaptiveKlController({ initKlCoef: 1, target: 6, horizon: 100 });
    controller.update(600, 50);
    expect(controller.value).toBeCloseTo(1.1, 12);
    controller.update(-5, 50);
    expect(controller.value).toBeCloseTo(1.1 * 0.9, 12);
    controller.update(6, 50);
    expect(controller.value).toBeCloseTo(1.1 * 0.9, 12);
  });

  it("go on from a saved state", () => {
    const first = createKlController(SETTINGS);
    first.update(9, 64);
    const second = createKlController(SETTINGS, first.getState());
    expect(second.value).toBe(first.value);
    first.update(3, 64);
    second.update(3, 64);
    expect(second.value).toBe(first.value);
  });

  it("stay where they are when they are fixed", () => {
    const controller = createKlController({ ...SETTINGS, adaptiveKl: false });
    controller.update(100, 1000);
    expect(controller.value).toBe(0.2);
    expect(controller.getState()).toEqual({ value: 0.2 });
  });
});

it("approximates the divergence by half the squared log ratio", () => {
  expect(approximateKl([1, Math.E, 1 / Math.E ** 2])).toBeCloseTo((0 + 0.5 + 2) / 3, 12);
  expect(approximateKl([])).toBe(0);
});
