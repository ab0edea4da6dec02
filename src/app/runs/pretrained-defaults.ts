import { findModel } from "../../models/registry/index.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/**
 * Returns the turns of a run without a given length. A turn whose prompt is new costs ten times one
 * whose prompt occurred before.
 */
export function getPretrainedTurns(observationsRecur: boolean): number {
  return observationsRecur ? 196_608 : 16_384;
}

/**
 * The last layers are enough for tasks of one decision per prompt, and an update costs a few times
 * less.
 */
export const PRETRAINED_RUN_DEFAULTS = {
  numEnvs: 64,
  layersToTransform: "last-4",
  // With 0.0001, a hundred updates do not make the names of actions likely.
  sftLearningRate: 5e-4,
} as const;

/**
 * PPO defaults of a pretrained model whose completions are among finitely many, measured with
 * SmolLM2-135M: docs/pretrained.md has the curves. Prompts that recur cost one row, so batches are
 * large; the mean return of equal prompts replaces a value head that learns slowly.
 */
const PRETRAINED_PPO_DEFAULTS = {
  batchSize: 4096,
  miniBatchSize: 1024,
  numPpoEpochs: 4,
  learningRate: 5e-4,
  lrSchedulerType: "linear",
  maxGradNorm: 0.5,
  gamma: 0.99,
  lam: 0.95,
  initKlCoef: 0,
  adaptiveKl: false,
  advantageLevel: "turn",
  stateBaseline: true,
  rewardScaling: true,
  // The value head has the last hidden state to itself; a larger weight lets its gradient dominate
  // the adapter's.
  vfCoef: 0.01,
  entropyCoef: 0.1,
  entropySchedulerType: "linear",
} as const satisfies AlgorithmSettings;

/** Sizes of updates where prompts do not recur: more turns would not cost less each. */
const NEW_PROMPT_SIZES = { batchSize: 512, miniBatchSize: 128 } as const satisfies AlgorithmSettings;

/** Parameters of SmolLM2-135M. */
const MEASURED_PARAMETERS = 135e6;

/**
 * Exponent by which the rate falls with the parameters. In tinker-cookbook's rule for Llama models,
 * the rate of an adapter falls with the width to the power of 0.78; the width grows with the root
 * of the parameters.
 */
const RATE_EXPONENT = 0.4;

/**
 * Returns PPO's default learning rate for a pretrained model: the measured one, and for a model
 * whose name says that it is larger, a rate extrapolated by its parameters.
 */
function getPretrainedLearningRate(model: string): number {
  const parameters = findModel(model)?.model.parameters ?? MEASURED_PARAMETERS;
  const factor = Math.min(1, (MEASURED_PARAMETERS / parameters) ** RATE_EXPONENT);
  return Number((PRETRAINED_PPO_DEFAULTS.learningRate * factor).toPrecision(2));
}

/** Returns PPO's defaults for a run of a pretrained model. */
export function getPretrainedPpoDefaults({
  model,
  observationsRecur,
}: {
  readonly model: string;
  readonly observationsRecur: boolean;
}): AlgorithmSettings {
  return {
    ...PRETRAINED_PPO_DEFAULTS,
    ...(observationsRecur ? {} : NEW_PROMPT_SIZES),
    learningRate: getPretrainedLearningRate(model),
  };
}

/** Describes a learning rate that is extrapolated; undefined for other runs. */
export function describeExtrapolatedRate(config: {
  readonly algorithm: string;
  readonly model: string;
  readonly learningRate?: number;
}): string | undefined {
  const { algorithm, model, learningRate } = config;
  const isExtrapolated =
    algorithm === "ppo" &&
    learningRate === getPretrainedLearningRate(model) &&
    learningRate !== PRETRAINED_PPO_DEFAULTS.learningRate;
  return isExtrapolated
    ? `The learning rate ${learningRate} is extrapolated from a model of 135 million parameters. If kl jumps in the first updates, lower --learning-rate (docs/pretrained.md).`
    : undefined;
}

/** PPO on a Tinker service: the same, with the rate of the embedded model for its critic. */
export const SERVICE_PPO_DEFAULTS = {
  ...PRETRAINED_PPO_DEFAULTS,
  valueHeadLearningRate: 3e-4,
} as const satisfies AlgorithmSettings;

/**
 * Whether a run of a pretrained model has the defaults above; they were measured for PPO, an
 * adapter and completions among finitely many.
 */
export function hasPretrainedDefaults({
  algorithm = "ppo",
  isListed,
  tuning = "lora",
}: {
  readonly algorithm?: string;
  readonly isListed: boolean;
  readonly tuning?: string;
}): boolean {
  return algorithm === "ppo" && isListed && tuning === "lora";
}
