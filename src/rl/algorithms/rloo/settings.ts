import { ENTROPY_MIN_RATE, ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { returnSettings } from "../shared/returns.js";
import {
  LR_SCHEDULE,
  checkReference,
  optimizerSettings,
  referenceSettings,
  MAX_COMPLETION_LENGTH,
  MAX_GRAD_NORM,
  resolveBatchSize,
  updateSettings,
} from "../shared/update-settings.js";
import { invalidArgument } from "../../../core/errors.js";
import { boolean, defineSettings, integer, number, resolveSettings, type Settings } from "../../../core/settings.js";

const TRL = "TRL 1.16";

/** RLOO's settings (Ahmadian et al. 2024) and where each default comes from. */
export const rlooSettings = defineSettings({
  numGenerations: integer({ default: 2, min: 2, description: "Number of generations per group.", source: TRL }),
  ...updateSettings,
  ...returnSettings,
  numIterations: integer({ default: 1, min: 1, description: "Number of optimization epochs per update.", source: TRL }),
  learningRate: number({ common: true, default: 1e-6, min: 0, description: "Learning rate of AdamW.", source: TRL }),
  lrSchedulerType: LR_SCHEDULE,
  ...optimizerSettings,
  maxGradNorm: MAX_GRAD_NORM,
  epsilon: number({ default: 0.2, min: 0, description: "Lower clipping range of a sequence's ratio.", source: TRL }),
  epsilonHigh: number({
    min: 0,
    description: "Upper clipping range of a sequence's ratio. Default: epsilon.",
    source: TRL,
  }),
  beta: number({
    default: 0.05,
    min: 0,
    description: "Weight of the KL divergence from the reference policy, subtracted from the reward.",
    source: TRL,
  }),
  ...referenceSettings,
  entropyCoef: number({
    default: 0,
    min: 0,
    description: "Weight of the entropy bonus.",
    source: "off, as in TRL 1.16",
  }),
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: "off, as in TRL 1.16" },
  entropyMinRate: ENTROPY_MIN_RATE,
  normalizeAdvantages: boolean({
    description: "Normalize the advantages of a batch to mean 0 and standard deviation 1.",
    source: TRL,
  }),
  rewardClipMin: number({ description: "Lower bound of rewards.", source: TRL }),
  rewardClipMax: number({ description: "Upper bound of rewards.", source: TRL }),
  maskTruncatedCompletions: boolean({ description: "Exclude truncated completions from the loss.", source: TRL }),
  maxCompletionLength: MAX_COMPLETION_LENGTH,
});

/** Resolved settings of RLOO. */
export type RlooConfig = Omit<Settings<typeof rlooSettings>, "epsilonHigh"> & { readonly epsilonHigh: number };
/** Settings of RLOO; defaults fill in the rest. */
export type RlooOptions = Partial<Settings<typeof rlooSettings>>;

/** Resolves RLOO's settings. @throws INVALID_ARGUMENT for invalid settings. */
export function resolveRlooConfig(options: RlooOptions = {}): RlooConfig {
  const config = resolveSettings("RLOO", rlooSettings, options);
  checkReference("RLOO", "beta", config);
  const { rewardClipMin = -Infinity, rewardClipMax = Infinity } = config;
  if (rewardClipMin > rewardClipMax)
    throw invalidArgument(`RLOO's rewardClipMin is ${rewardClipMin}, above its rewardClipMax of ${rewardClipMax}.`);
  const batchSize = resolveBatchSize("RLOO", options.batchSize, config.numGenerations, config.batchSize);
  return { ...config, batchSize, epsilonHigh: config.epsilonHigh ?? config.epsilon };
}
