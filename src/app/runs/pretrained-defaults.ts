import type { ActionMode } from "../../rl/agent/index.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/** Turns of a run without a given length. */
export const PRETRAINED_TURNS = 196_608;

/**
 * The last layers are enough for tasks of one decision per prompt, and an update costs a few times
 * less.
 */
export const PRETRAINED_RUN_DEFAULTS = {
  numEnvs: 64,
  layersToTransform: "last-4",
} as const;

/**
 * PPO defaults of a pretrained model whose completions are choices, measured with SmolLM2-135M:
 * docs/pretrained.md has the curves. Prompts that recur cost one row, so batches are large; the
 * mean return of equal prompts replaces a value head that learns slowly.
 */
export const PRETRAINED_PPO_DEFAULTS = {
  batchSize: 4096,
  miniBatchSize: 1024,
  numPpoEpochs: 4,
  learningRate: 5e-4,
  lrSchedulerType: "linear",
  maxGradNorm: 0.5,
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

/** PPO on a Tinker service: the same, with the rate of the embedded model for its critic. */
export const SERVICE_PPO_DEFAULTS = {
  ...PRETRAINED_PPO_DEFAULTS,
  valueHeadLearningRate: 3e-4,
} as const satisfies AlgorithmSettings;

/**
 * Whether a run of a pretrained model has the defaults above; they were measured for PPO, an
 * adapter and choices alone.
 */
export function hasPretrainedDefaults({
  algorithm = "ppo",
  actionMode,
  tuning = "lora",
}: {
  readonly algorithm?: string;
  readonly actionMode?: ActionMode;
  readonly tuning?: string;
}): boolean {
  return algorithm === "ppo" && actionMode === "choices" && tuning === "lora";
}
