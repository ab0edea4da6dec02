import { describe, expect, it } from "vitest";
import { number } from "../../core/settings.js";
import type { ScoredTrajectory } from "./algorithm-definition.js";
import { defineAlgorithm } from "./define-algorithm.js";
import type { LossNodes } from "./shared/loss-nodes.js";

const learningRate = number({ default: 1e-3, description: "learning rate" });
const beta = number({ default: 0, description: "weight of the KL" });

describe("defineAlgorithm", () => {
  it("types functions by the settings, also with klSetting", async () => {
    const algorithm = defineAlgorithm({
      name: "typed",
      settings: { learningRate, beta },
      klSetting: "beta",
      rollout: (config) => ({ kind: "turns", turns: config.beta > 0 ? 1 : 2 }),
      advantages: async (trajectories, config) => ({
        advantages: trajectories.map(({ turns }) => turns.map((turn) => turn.oldLogProbs.map(() => config.beta))),
      }),
      loss: ({ logProbs }) => ({ loss: logProbs }),
    });
    expect(algorithm.klSetting).toBe("beta");
    expect(algorithm.resolve({ beta: 0.1 }).beta).toBe(0.1);
  });

  it("refuses an algorithm without a learning rate at once", () => {
    const parts = {
      name: "no-rate",
      rollout: () => ({ kind: "turns", turns: 1 }) as const,
      advantages: () => ({ advantages: [] }),
      loss: ({ logProbs }: LossNodes) => ({ loss: logProbs }),
    };
    expect(() => defineAlgorithm({ ...parts, settings: { beta } })).toThrow(/no-rate has no learning rate.*Add it/);
    const resolved = defineAlgorithm({ ...parts, settings: { beta }, resolve: () => ({ learningRate: 0.1 }) });
    expect(resolved.resolve()).toEqual({ learningRate: 0.1 });
    const broken = defineAlgorithm({ ...parts, settings: { beta }, resolve: () => ({ learningRate: NaN }) });
    expect(() => broken()).toThrow(/has no learning rate/);
  });

  it("does not compile with a klSetting that is not a setting", () => {
    const parts = {
      name: "typo",
      settings: { learningRate },
      rollout: () => ({ kind: "turns", turns: 1 }) as const,
      advantages: (trajectories: readonly ScoredTrajectory[]) => ({ advantages: trajectories.map(() => []) }),
      loss: ({ logProbs }: LossNodes) => ({ loss: logProbs }),
    };
    expect(defineAlgorithm(parts).klSetting).toBeUndefined();
    // @ts-expect-error The setting does not exist.
    expect(() => defineAlgorithm({ ...parts, klSetting: "betta" })).toThrow('got "betta"');
    // @ts-expect-error The learner reads the setting, but this algorithm does not declare it.
    expect(() => defineAlgorithm({ ...parts, klSetting: "entropyCoef" })).toThrow('got "entropyCoef"');
  });
});
