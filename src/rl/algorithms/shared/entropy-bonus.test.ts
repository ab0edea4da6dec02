import { describe, expect, it } from "vitest";
import { input, dim } from "../../../engine/graph/index.js";
import { checkEntropy, entropyFactor } from "./entropy-bonus.js";

describe("entropyFactor", () => {
  it("falls from 1 to the least rate over the run", () => {
    const factors = (options: Parameters<typeof entropyFactor>[0]) =>
      [0, 0.25, 1].map((progress) => entropyFactor(options, progress));
    expect(factors({ entropySchedulerType: "linear", entropyMinRate: 0.2 })).toEqual([1, 0.2 + 0.8 * 0.75, 0.2]);
    expect(factors({ entropySchedulerType: "linear" })).toEqual([1, 0.75, 0]);
    const cosine = (1 + Math.cos(Math.PI / 4)) / 2;
    expect(factors({ entropySchedulerType: "cosine" })).toEqual([1, expect.closeTo(cosine, 12), expect.closeTo(0, 12)]);
    expect(factors({ entropyMinRate: 0.2 })).toEqual([1, 1, 1]);
    expect(factors({})).toEqual([1, 1, 1]);
  });
});

describe("checkEntropy", () => {
  const entropy = input("entropy", "float32", [dim("selected")]);

  it("rejects a weight without entropies alone", () => {
    expect(() => checkEntropy("PPO", 1, undefined)).toThrow("PPO's entropyCoef is 1");
    expect([
      checkEntropy("PPO", 0, undefined),
      checkEntropy("PPO", 0, entropy),
      checkEntropy("PPO", 1, entropy),
    ]).toEqual([undefined, undefined, undefined]);
  });
});
