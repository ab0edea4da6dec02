import type { AlgorithmName } from "../algorithms/table.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/** Episodes of an update: the model is small enough for many. */
const EPISODES = 64;

/**
 * What fits the embedded model better where episodes are compared: many of them, a higher learning rate, an entropy bonus that falls,
 * and no divergence from a reference policy that replies at random.
 */
export function embeddedGroupDefaults(
  algorithm: Exclude<AlgorithmName, "ppo">,
  { numGenerations = algorithm === "reinforce" ? 1 : 4 }: AlgorithmSettings,
): AlgorithmSettings {
  const shared = {
    numGenerations,
    batchSize: Math.ceil(EPISODES / numGenerations) * numGenerations,
    minTurns: 512,
    miniBatchSize: 256,
    numIterations: 4,
    learningRate: 1e-3,
    maxGradNorm: 0.5,
  };
  const entropy = { entropyCoef: 0.03, entropySchedulerType: "linear" } as const;
  return {
    grpo: { ...shared, ...entropy },
    rloo: { ...shared, beta: 0 },
    reinforce: { ...shared, ...entropy, klCoef: 0 },
  }[algorithm];
}
