import type { ActionMode } from "../../rl/agent/text-agent.js";
import type { AlgorithmName } from "../../rl/algorithms/algorithms.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/** Episodes of an update: the model is small enough for many. */
const EPISODES_PER_UPDATE = 64;

/**
 * Where a reply is none of a few, each of its tokens may be one of a thousand, whose entropy can be ten times that of two choices:
 * the bonus that keeps a choice open would pay for noise. With free replies the entropy rose with it to 4.5 nats in Blackjack by
 * GRPO, and nothing was learnt; in CartPole by PPO to 27, and the return fell from 133 to 92.
 */
const FREE_COMPLETION_ENTROPY_DIVISOR = 10;

/** A bonus for entropy that falls, of this size where a reply is one of a few. */
function decayingEntropyBonus(entropyCoef: number, actionMode: ActionMode) {
  const isChoice = actionMode === "choices" || actionMode === "scored";
  return {
    entropyCoef: isChoice ? entropyCoef : entropyCoef / FREE_COMPLETION_ENTROPY_DIVISOR,
    entropySchedulerType: "linear",
  } as const;
}

/**
 * What fits the embedded model better in PPO: large batches, a higher learning rate, and no reference to stay close to, since that
 * replies at random. Lambda and 64 turns in a row of each of 16 games: docs/decisions/cartpole-credit.md.
 */
export const getEmbeddedPpoDefaults = ({ actionMode }: { readonly actionMode: ActionMode }) =>
  ({
    batchSize: 1024,
    miniBatchSize: 256,
    numPpoEpochs: 4,
    learningRate: 3e-3,
    lrSchedulerType: "linear",
    maxGradNorm: 0.5,
    lam: 0.99,
    initKlCoef: 0,
    adaptiveKl: false,
    advantageLevel: "turn",
    rewardScaling: true,
    vfCoef: 0.5,
    ...decayingEntropyBonus(0.03, actionMode),
  }) as const satisfies AlgorithmSettings;

/**
 * What fits the embedded model better where episodes are compared: many of them, a higher learning rate, and something that keeps it
 * trying: an entropy bonus that falls. Its reference policy replies at random, so there is nothing to stay close to.
 */
export function getEmbeddedGroupDefaults(
  { algorithm, actionMode }: { readonly algorithm: Exclude<AlgorithmName, "ppo">; readonly actionMode: ActionMode },
  { numGenerations = 8 }: AlgorithmSettings,
): AlgorithmSettings {
  const shared = {
    numGenerations,
    batchSize: Math.ceil(EPISODES_PER_UPDATE / numGenerations) * numGenerations,
    minTurns: 512,
    miniBatchSize: 256,
    numIterations: 4,
    learningRate: 1e-3,
    maxGradNorm: 0.5,
  };
  const entropyBonus = (entropyCoef: number) => decayingEntropyBonus(entropyCoef, actionMode);
  return {
    grpo: { ...shared, ...entropyBonus(0.1) },
    // Dividing by the group's deviation favours what is seldom tried; without it the bonus must do more.
    rloo: { ...shared, ...entropyBonus(0.2), beta: 0 },
    reinforce: {
      ...shared,
      ...entropyBonus(0.15),
      baseline: numGenerations > 1 ? "group" : "none",
      klCoef: 0,
    } as const,
  }[algorithm];
}
