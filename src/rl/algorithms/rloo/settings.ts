import { ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { returnSettings } from "../shared/returns.js";
import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { resolveBatchSize, updateSettings } from "../shared/update-settings.js";
import { invalidArgument, resolveSettings, type Settings } from "../../../core/settings.js";

const TRL = "TRL 1.16";

/** RLOO's settings (Ahmadian et al. 2024) and where each default comes from. */
export const rlooSettings = {
  numGenerations: { default: 2, integer: true, min: 2, description: "samples of a group", source: TRL },
  ...updateSettings,
  ...returnSettings,
  numIterations: {
    default: 1,
    integer: true,
    min: 1,
    description: "times that an update goes through its batch",
    source: TRL,
  },
  learningRate: { default: 1e-6, min: 0, description: "AdamW's learning rate", source: TRL },
  lrSchedulerType: {
    default: "linear",
    choices: SCHEDULES,
    description: "how the learning rate falls over the run",
    source: "TRL 1.16 (Transformers' TrainingArguments)",
  },
  maxGradNorm: {
    default: 1,
    above: 0,
    description: "gradients longer than this are scaled down to it",
    source: "TRL 1.16 (Transformers' TrainingArguments)",
  },
  epsilon: { default: 0.2, min: 0, description: "how far a sequence's ratio may fall below 1", source: TRL },
  epsilonHigh: {
    default: undefined,
    min: 0,
    description: "how far a sequence's ratio may rise above 1; epsilon by default",
    source: TRL,
  },
  beta: {
    default: 0.05,
    min: 0,
    description: "weight of the divergence from the reference policy, taken from the reward",
    source: TRL,
  },
  entropyCoef: { default: 0, min: 0, description: "weight of the entropy bonus", source: "off, as in TRL 1.16" },
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: "off, as in TRL 1.16" },
  normalizeAdvantages: {
    default: false,
    description: "bring the batch's advantages to mean 0, deviation 1",
    source: TRL,
  },
  rewardClipMin: { default: undefined, description: "rewards below this are raised to it", source: TRL },
  rewardClipMax: { default: undefined, description: "rewards above this are lowered to it", source: TRL },
  maskTruncatedCompletions: {
    default: false,
    description: "replies that were cut off do not train the policy",
    source: TRL,
  },
  maxCompletionLength: {
    default: 512,
    integer: true,
    min: 1,
    description: "tokens that a sample has at most",
    source: TRL,
  },
} as const;

/** RLOO's configuration, all of it decided. */
export type RlooConfig = Omit<Settings<typeof rlooSettings>, "epsilonHigh"> & { readonly epsilonHigh: number };
export type RlooOptions = Partial<Settings<typeof rlooSettings>>;

/** RLOO's configuration; throws INVALID_ARGUMENT for what cannot be. */
export function resolveRlooConfig(options: RlooOptions = {}): RlooConfig {
  const config = resolveSettings("RLOO", rlooSettings, options);
  const { rewardClipMin = -Infinity, rewardClipMax = Infinity } = config;
  if (rewardClipMin > rewardClipMax)
    throw invalidArgument(`RLOO's rewardClipMin is ${rewardClipMin}, above its rewardClipMax of ${rewardClipMax}.`);
  const batchSize = resolveBatchSize("RLOO", options.batchSize, config.numGenerations, config.batchSize);
  return { ...config, batchSize, epsilonHigh: config.epsilonHigh ?? config.epsilon };
}
