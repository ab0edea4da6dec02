import type { AlgorithmName } from "../../rl/algorithms/index.js";
import { trainerSettings } from "../../rl/train/index.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/** Turns of a run without a given length: a minute or a few. */
export const EMBEDDED_TURNS = 30_720;

/**
 * Value of sftWarmStart for a warm start on random actions: a policy that has seen each of them
 * explores.
 */
export const RANDOM_WARM_START = "random";
/** Random turns of that warm start. */
export const RANDOM_WARM_START_TURNS = 1024;

/**
 * Consecutive turns of an environment in an update: few, so that there are many updates, but more
 * where credit must reach far.
 */
const CONSECUTIVE_TURNS = { short: 16, long: 64 };
/** Step limit above which episodes are long. */
const LONG_EPISODE = 100;

/** Episodes per update; the model is small enough for many. */
const EPISODES_PER_UPDATE = 64;

/**
 * Scales the bonus of free completions: their entropy can be ten times that of two choices, and the
 * full bonus would reward noise. With it, GRPO on Blackjack rose to 4.5 nats and did not improve;
 * PPO on CartPole rose to 27, and the return fell from 133 to 92.
 */
const FREE_COMPLETION_ENTROPY_DIVISOR = 10;

/** Returns a decaying entropy bonus; the coefficient applies to completions that can be listed. */
function decayingEntropyBonus(entropyCoef: number, isListed: boolean) {
  return {
    entropyCoef: isListed ? entropyCoef : entropyCoef / FREE_COMPLETION_ENTROPY_DIVISOR,
    entropySchedulerType: "linear",
  } as const;
}

/**
 * PPO defaults of the embedded model: a higher learning rate, a large entropy bonus, and no KL
 * penalty, since the reference policy is random. For what they were measured on, see
 * docs/decisions/learning-defaults.md; for lambda and 64 consecutive turns, see
 * docs/decisions/cartpole-credit.md.
 */
export const getEmbeddedPpoDefaults = ({
  isListed,
  maxEpisodeSteps = 0,
}: {
  readonly isListed: boolean;
  readonly maxEpisodeSteps?: number | undefined;
}) =>
  ({
    batchSize: trainerSettings.numEnvs.default * CONSECUTIVE_TURNS[maxEpisodeSteps > LONG_EPISODE ? "long" : "short"],
    miniBatchSize: 256,
    numPpoEpochs: 4,
    learningRate: 1e-3,
    valueHeadLearningRate: 3e-4,
    lrSchedulerType: "linear",
    maxGradNorm: 0.5,
    targetKl: 0.05,
    gamma: 0.99,
    lam: 0.99,
    initKlCoef: 0,
    adaptiveKl: false,
    advantageLevel: "turn",
    rewardScaling: true,
    minAdvantageStd: 0.03,
    explorationBonus: 0.1,
    vfCoef: 0.5,
    ...decayingEntropyBonus(0.3, isListed),
  }) as const satisfies AlgorithmSettings;

/**
 * Defaults of the embedded model for group methods: many episodes, a higher learning rate, a
 * decaying entropy bonus, and no KL penalty, since the reference policy is random.
 */
export function getEmbeddedGroupDefaults(
  { algorithm, isListed }: { readonly algorithm: Exclude<AlgorithmName, "ppo">; readonly isListed: boolean },
  given: AlgorithmSettings,
): AlgorithmSettings {
  const numGenerations = given.numGenerations ?? (algorithm === "online-dpo" ? 2 : 8);
  const shared = {
    numGenerations,
    batchSize: Math.ceil(EPISODES_PER_UPDATE / numGenerations) * numGenerations,
    minTurns: 512,
    miniBatchSize: 256,
    numIterations: 4,
    learningRate: 1e-3,
    maxGradNorm: 0.5,
  };
  const entropyBonus = (entropyCoef: number) => decayingEntropyBonus(entropyCoef, isListed);
  return {
    grpo: { ...shared, ...entropyBonus(0.1) },
    // Without division by the group's deviation, rare actions get less weight, so the bonus is
    // larger.
    rloo: { ...shared, ...entropyBonus(0.2), beta: 0 },
    reinforce: {
      ...shared,
      ...entropyBonus(0.15),
      baseline: numGenerations > 1 ? "group" : "none",
      klCoef: 0,
    } as const,
    "online-dpo": { ...shared },
  }[algorithm];
}
