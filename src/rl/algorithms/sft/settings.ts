import { microBatchTokens } from "../../../models/index.js";
import { LR_SCHEDULE } from "../shared/update-settings.js";
import {
  boolean,
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  type Settings,
} from "../../../core/settings.js";

const EDU = "LlamaGymEDU";
const TRL = "TRL's SFTConfig";

/** Settings of supervised fine-tuning, with the source of each default. */
export const sftSettings = defineSettings({
  learningRate: number({ common: true, default: 1e-4, min: 0, description: "Learning rate of AdamW.", source: EDU }),
  lrSchedulerType: { ...LR_SCHEDULE, source: TRL },
  warmupSteps: integer({ default: 0, min: 0, description: "Number of warmup updates.", source: TRL }),
  batchSize: integer({ common: true, default: 8, min: 1, description: "Number of examples per update.", source: TRL }),
  maxBatchTokens: integer({ min: 1, description: "Maximum number of tokens per update, in place of batchSize." }),
  numTrainEpochs: number({ common: true, default: 3, above: 0, description: "Number of epochs.", source: TRL }),
  maxSteps: integer({
    common: true,
    min: 1,
    description: "Number of updates, in place of numTrainEpochs.",
    source: TRL,
  }),
  maxLength: integer({
    common: true,
    min: 2,
    description: "Maximum number of tokens per example. Default: the model's context.",
  }),
  overlong: choice({
    default: "truncate",
    choices: ["truncate", "skip", "error"],
    description: "What to do with longer examples: truncate, skip, or fail.",
    source: TRL,
  }),
  assistantOnlyLoss: boolean({ default: true, description: "Compute the loss on completions only, not on prompts." }),
  weightDecay: number({ default: 0, min: 0, description: "Weight decay of AdamW.", source: TRL }),
  beta1: number({ default: 0.9, min: 0, max: 0.9999, description: "Decay of AdamW's first moment.", source: TRL }),
  beta2: number({ default: 0.999, min: 0, max: 0.99999, description: "Decay of AdamW's second moment.", source: TRL }),
  maxGradNorm: number({ default: 1, above: 0, description: "Maximum gradient norm for clipping.", source: TRL }),
  microBatchTokens,
  sharePrefixes: boolean({ default: true, description: "Compute prefixes shared by examples of an update only once." }),
  seed: integer({ common: true, default: 0, min: 0, description: "Seed of the order of examples and of dropout." }),
});

/** Resolved settings of supervised fine-tuning. */
export type SftConfig = Settings<typeof sftSettings>;
/** Settings of supervised fine-tuning; defaults fill in the rest. */
export type SftOptions = Partial<SftConfig>;

/** Resolves the settings. @throws INVALID_ARGUMENT for unknown settings and values out of range. */
export function resolveSftConfig(options: SftOptions = {}): SftConfig {
  return resolveSettings("SFT", sftSettings, options);
}
