import { ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { returnSettings } from "../shared/returns.js";
import { PER_TOKEN_KL } from "../shared/kl.js";
import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { resolveBatchSize, updateSettings } from "../shared/update-settings.js";
import { invalidArgument, resolveSettings, type Settings } from "../../../core/settings.js";

const OPENRLHF = "OpenRLHF";
const SHARED = "as GRPO here";

/** Settings of REINFORCE++ (Hu et al. 2025) and where each default comes from. */
export const reinforceSettings = {
  numGenerations: { default: 1, integer: true, min: 1, description: "samples of a group", source: "Hu et al. 2025" },
  ...updateSettings,
  ...returnSettings,
  numIterations: {
    default: 1,
    integer: true,
    min: 1,
    description: "times that an update goes through its batch",
    source: OPENRLHF,
  },
  learningRate: { default: 1e-5, min: 0, description: "AdamW's learning rate", source: SHARED },
  lrSchedulerType: {
    default: "linear",
    choices: SCHEDULES,
    description: "how the learning rate falls over the run",
    source: SHARED,
  },
  maxGradNorm: {
    default: 1,
    above: 0,
    description: "gradients longer than this are scaled down to it",
    source: OPENRLHF,
  },
  baseline: {
    default: "none",
    choices: ["none", "group"],
    description: "what returns are compared with before they are normalised over the batch",
    source: "Hu et al. 2025",
  },
  gamma: { ...returnSettings.gamma, default: 1, source: OPENRLHF },
  klPenalty: {
    default: "kl",
    choices: PER_TOKEN_KL,
    description: "estimate of each token's divergence from the reference policy",
    source: "Hu et al. 2025",
  },
  klCoef: { default: 0.01, min: 0, description: "weight of the divergence, taken from the reward", source: OPENRLHF },
  epsilon: { default: 0.2, min: 0, description: "how far the ratio may move from 1", source: OPENRLHF },
  entropyCoef: { default: 0, min: 0, description: "weight of the entropy bonus", source: OPENRLHF },
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: "constant, as in OpenRLHF" },
  maskTruncatedCompletions: {
    default: false,
    description: "replies that were cut off do not train the policy",
    source: SHARED,
  },
  maxCompletionLength: {
    default: 512,
    integer: true,
    min: 1,
    description: "tokens that a sample has at most",
    source: SHARED,
  },
} as const;

export type ReinforceConfig = Settings<typeof reinforceSettings>;
export type ReinforceOptions = Partial<ReinforceConfig>;

/** REINFORCE++'s configuration, all of it decided; throws INVALID_ARGUMENT for what cannot be. */
export function resolveReinforceConfig(options: ReinforceOptions = {}): ReinforceConfig {
  const config = resolveSettings("REINFORCE++", reinforceSettings, options);
  if (config.baseline === "group" && config.numGenerations < 2)
    throw invalidArgument('REINFORCE++\'s baseline "group" needs groups: set numGenerations to 2 or more.');
  const batchSize = resolveBatchSize("REINFORCE++", options.batchSize, config.numGenerations, config.batchSize);
  return { ...config, batchSize };
}
