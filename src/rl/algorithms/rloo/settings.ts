import { ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { returnSettings } from "../shared/returns.js";
import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { resolveBatchSize, updateSettings } from "../shared/update-settings.js";
import { invalidArgument } from "../../../core/errors.js";
import { resolveSettings, type Settings } from "../../../core/settings.js";

const TRL = "TRL 1.16";

/** RLOO's settings (Ahmadian et al. 2024) and where each default comes from. */
export const rlooSettings = {
  numGenerations: { default: 2, integer: true, min: 2, description: "Number of generations per group.", source: TRL },
  ...updateSettings,
  ...returnSettings,
  numIterations: {
    default: 1,
    integer: true,
    min: 1,
    description: "Number of optimization epochs per update.",
    source: TRL,
  },
  learningRate: { default: 1e-6, min: 0, description: "Learning rate of AdamW.", source: TRL },
  lrSchedulerType: {
    default: "linear",
    choices: SCHEDULES,
    description: "Learning rate schedule.",
    source: "TRL 1.16 (Transformers' TrainingArguments)",
  },
  maxGradNorm: {
    default: 1,
    above: 0,
    description: "Maximum gradient norm for clipping.",
    source: "TRL 1.16 (Transformers' TrainingArguments)",
  },
  epsilon: { default: 0.2, min: 0, description: "Lower clipping range of a sequence's ratio.", source: TRL },
  epsilonHigh: {
    default: undefined,
    min: 0,
    description: "Upper clipping range of a sequence's ratio. Default: epsilon.",
    source: TRL,
  },
  beta: {
    default: 0.05,
    min: 0,
    description: "Weight of the KL divergence from the reference policy, subtracted from the reward.",
    source: TRL,
  },
  entropyCoef: { default: 0, min: 0, description: "Weight of the entropy bonus.", source: "off, as in TRL 1.16" },
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: "off, as in TRL 1.16" },
  normalizeAdvantages: {
    default: false,
    description: "Normalize the advantages of a batch to mean 0 and standard deviation 1.",
    source: TRL,
  },
  rewardClipMin: { default: undefined, description: "Lower bound of rewards.", source: TRL },
  rewardClipMax: { default: undefined, description: "Upper bound of rewards.", source: TRL },
  maskTruncatedCompletions: {
    default: false,
    description: "Exclude truncated completions from the loss.",
    source: TRL,
  },
  maxCompletionLength: {
    default: 512,
    integer: true,
    min: 1,
    description: "Maximum number of tokens per completion.",
    source: TRL,
  },
} as const;

/** Resolved settings of RLOO. */
export type RlooConfig = Omit<Settings<typeof rlooSettings>, "epsilonHigh"> & { readonly epsilonHigh: number };
/** Settings of RLOO; defaults fill in the rest. */
export type RlooOptions = Partial<Settings<typeof rlooSettings>>;

/** Resolves RLOO's settings. @throws INVALID_ARGUMENT for invalid settings. */
export function resolveRlooConfig(options: RlooOptions = {}): RlooConfig {
  const config = resolveSettings("RLOO", rlooSettings, options);
  const { rewardClipMin = -Infinity, rewardClipMax = Infinity } = config;
  if (rewardClipMin > rewardClipMax)
    throw invalidArgument(`RLOO's rewardClipMin is ${rewardClipMin}, above its rewardClipMax of ${rewardClipMax}.`);
  const batchSize = resolveBatchSize("RLOO", options.batchSize, config.numGenerations, config.batchSize);
  return { ...config, batchSize, epsilonHigh: config.epsilonHigh ?? config.epsilon };
}
