import type { AlgorithmName } from "../algorithms/table.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/** Episodes of an update: the model is small enough for many. */
const EPISODES = 64;

/**
 * What fits the embedded model better where episodes are compared: many of them, a higher learning rate, and something that keeps it
 * trying: an entropy bonus that falls. Its reference policy replies at random, so there is nothing to stay close to.
 */
export function embeddedGroupDefaults(
  algorithm: Exclude<AlgorithmName, "ppo">,
  { numGenerations = 8 }: AlgorithmSettings,
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
  const bonus = (entropyCoef: number) => ({ entropyCoef, entropySchedulerType: "linear" }) as const;
  return {
    grpo: { ...shared, ...bonus(0.1) },
    // Dividing by the group's deviation favours what is seldom tried; without it the bonus must do more.
    rloo: { ...shared, ...bonus(0.2), beta: 0 },
    reinforce: { ...shared, ...bonus(0.15), baseline: numGenerations > 1 ? "group" : "none", klCoef: 0 } as const,
  }[algorithm];
}
