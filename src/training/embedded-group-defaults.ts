import type { AlgorithmName } from "../algorithms/table.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/** Episodes of an update: the model is small enough for many. */
const EPISODES = 64;

/**
 * What fits the embedded model better where episodes are compared: many of them, a higher learning rate, and no divergence from a
 * reference policy that replies at random.
 */
export function embeddedGroupDefaults(
  algorithm: Exclude<AlgorithmName, "ppo">,
  { numGenerations = algorithm === "reinforce" ? 1 : 8 }: AlgorithmSettings,
): AlgorithmSettings {
  const shared = {
    numGenerations,
    batchSize: Math.ceil(EPISODES / numGenerations) * numGenerations,
    miniBatchSize: 256,
    learningRate: 3e-3,
    maxGradNorm: 0.5,
  };
  return {
    grpo: { ...shared, entropyCoef: 0.01 },
    rloo: { ...shared, beta: 0 },
    reinforce: { ...shared, entropyCoef: 0.01, klCoef: 0 },
  }[algorithm];
}
