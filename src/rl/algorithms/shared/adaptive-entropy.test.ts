import { describe, expect, it } from "vitest";
import { resolveGrpoConfig } from "../grpo/settings.js";
import { currentEntropyCoef, initialEntropyState, updateEntropyState } from "./adaptive-entropy.js";

const config = resolveGrpoConfig({ useAdaptiveEntropy: true, entropyCoef: 0.01, entropyCoefMax: 0.014 });

describe("the adaptive weight of the entropy bonus", () => {
  it("follows the entropy of the steps before, as in TRL 1.16", () => {
    let state = initialEntropyState(config)!;
    // What TRL's trainer applies and keeps, computed with its statements in Python.
    const steps = [
      [0.5, 0, 0.005],
      [0.1, 0, 0.01],
      [0.19, 0.01, 0.014],
      [0.05, 0.014, 0.014],
      [0.3, 0.014, 0.009],
      [0.1, 0, 0.014],
    ];
    for (const [entropy, applied, next] of steps) {
      expect(currentEntropyCoef(config, state)).toBeCloseTo(applied, 12);
      state = updateEntropyState(state, [[entropy, entropy], [entropy]], [undefined, undefined], config);
      expect(state.entropyCoef).toBeCloseTo(next, 12);
      expect(state.entropy).toBeCloseTo(entropy, 12);
    }
  });

  it("averages over the tokens that train the policy", () => {
    const state = initialEntropyState(config)!;
    const { entropy } = updateEntropyState(state, [[1, 2], [4]], [[0, 1], [1]], config);
    expect(entropy).toBe(3);
    expect(updateEntropyState(state, [], [], config).entropy).toBe(0);
  });

  it.each([
    [{ entropyTarget: 1 }, "GRPO's entropyTarget is read with useAdaptiveEntropy only"],
    [{ entropyCoefMax: 2 }, "GRPO's entropyCoefMax is read with useAdaptiveEntropy only"],
    [{ useAdaptiveEntropy: true, entropyCoefMin: 1, entropyCoefMax: 0.5 }, "above entropyCoefMax 0.5"],
    [{ useAdaptiveEntropy: true, entropySchedulerType: "linear" as const }, "entropySchedulerType has no effect"],
    [{ useAdaptiveEntropy: true, entropyCoefDelta: -1 }, "`entropyCoefDelta` must be"],
  ])("refuses %j", (options, message) => {
    expect(() => resolveGrpoConfig(options)).toThrow(message);
  });
});
