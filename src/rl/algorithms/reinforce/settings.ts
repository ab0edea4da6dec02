import { ENTROPY_MIN_RATE, ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { returnSettings } from "../shared/returns.js";
import {
  checkReference,
  KL_PENALTY,
  LR_SCHEDULE,
  optimizerSettings,
  MAX_COMPLETION_LENGTH,
  referenceSettings,
  resolveBatchSize,
  updateSettings,
} from "../shared/update-settings.js";
import { invalidArgument } from "../../../core/errors.js";
import {
  boolean,
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  type Settings,
} from "../../../core/settings.js";

const OPENRLHF = "OpenRLHF";
const SHARED = "as GRPO here";

/** Settings of REINFORCE++ (Hu et al. 2025) and where each default comes from. */
export const reinforceSettings = defineSettings({
  numGenerations: integer({
    default: 1,
    min: 1,
    description: "Number of generations per group.",
    source: "Hu et al. 2025",
  }),
  ...updateSettings,
  ...returnSettings,
  numIterations: integer({
    default: 1,
    min: 1,
    description: "Number of optimization epochs per update.",
    source: OPENRLHF,
  }),
  learningRate: number({ common: true, default: 1e-5, min: 0, description: "Learning rate of AdamW.", source: SHARED }),
  lrSchedulerType: { ...LR_SCHEDULE, source: SHARED },
  ...optimizerSettings,
  maxGradNorm: number({ default: 1, above: 0, description: "Maximum gradient norm for clipping.", source: OPENRLHF }),
  baseline: choice({
    default: "none",
    choices: ["none", "group", "seat"],
    description:
      "Baseline subtracted from returns before they are normalized over the batch: the mean of the group, or the moving mean of the seat in a game.",
    source: "Hu et al. 2025",
  }),
  biasCorrection: boolean({
    default: true,
    description: "Correct the moving mean of the seat baseline for its start at 0.",
    source: "off in SPIRAL",
  }),
  gamma: { ...returnSettings.gamma, default: 1, source: OPENRLHF },
  klPenalty: { ...KL_PENALTY, source: "Hu et al. 2025" },
  klCoef: number({
    default: 0.01,
    min: 0,
    description: "Weight of the KL divergence, subtracted from the reward.",
    source: OPENRLHF,
  }),
  ...referenceSettings,
  epsilon: number({ default: 0.2, min: 0, description: "Clipping range of the ratio.", source: OPENRLHF }),
  entropyCoef: number({ default: 0, min: 0, description: "Weight of the entropy bonus.", source: OPENRLHF }),
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: "constant, as in OpenRLHF" },
  entropyMinRate: ENTROPY_MIN_RATE,
  maskTruncatedCompletions: boolean({ description: "Exclude truncated completions from the loss.", source: SHARED }),
  maxCompletionLength: { ...MAX_COMPLETION_LENGTH, source: SHARED },
});

/** Resolved settings of REINFORCE++. */
export type ReinforceConfig = Settings<typeof reinforceSettings>;
/** Settings of REINFORCE++; defaults fill in the rest. */
export type ReinforceOptions = Partial<ReinforceConfig>;

/** Resolves REINFORCE++'s settings. @throws INVALID_ARGUMENT for invalid settings. */
export function resolveReinforceConfig(options: ReinforceOptions = {}): ReinforceConfig {
  const config = resolveSettings("REINFORCE++", reinforceSettings, options);
  checkReference("REINFORCE++", "klCoef", config);
  if (config.baseline === "group" && config.numGenerations < 2)
    throw invalidArgument('REINFORCE++\'s baseline "group" needs groups: set numGenerations to 2 or more.');
  const batchSize = resolveBatchSize("REINFORCE++", options.batchSize, config.numGenerations, config.batchSize);
  return { ...config, batchSize };
}
