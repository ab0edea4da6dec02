import { boolean, choice, defineSettings, integer, number, type Settings } from "../../../core/settings.js";
import { microBatchTokens } from "../../../models/index.js";
import { LR_SCHEDULE, scheduleSettings } from "./update-settings.js";

const ARGUMENTS = "TRL's SFTConfig, DPOConfig and KTOConfig";

/** Settings of training on a list of examples. */
export const exampleSettings = defineSettings({
  lrSchedulerType: { ...LR_SCHEDULE, source: ARGUMENTS },
  ...scheduleSettings,
  warmupSteps: integer({ default: 0, min: 0, description: "Number of warmup updates.", source: ARGUMENTS }),
  batchSize: integer({
    common: true,
    default: 8,
    min: 1,
    description: "Number of examples per update.",
    source: ARGUMENTS,
  }),
  maxBatchTokens: integer({ min: 1, description: "Maximum number of tokens per update, in place of batchSize." }),
  numTrainEpochs: number({ common: true, default: 3, above: 0, description: "Number of epochs.", source: ARGUMENTS }),
  maxSteps: integer({
    common: true,
    min: 1,
    description: "Number of updates, in place of numTrainEpochs.",
    source: ARGUMENTS,
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
    source: ARGUMENTS,
  }),
  toolCalls: choice({
    default: "template",
    choices: ["template", "text"],
    description:
      "How tools and their calls are written: by the chat template, or, for one that renders no tools, as text, as llamagym serve and the gateway write them.",
  }),
  weightDecay: number({ default: 0, min: 0, description: "Weight decay of AdamW.", source: ARGUMENTS }),
  beta1: number({
    default: 0.9,
    min: 0,
    max: 0.9999,
    description: "Decay of AdamW's first moment.",
    source: ARGUMENTS,
  }),
  beta2: number({
    default: 0.999,
    min: 0,
    max: 0.99999,
    description: "Decay of AdamW's second moment.",
    source: ARGUMENTS,
  }),
  maxGradNorm: number({ default: 1, above: 0, description: "Maximum gradient norm for clipping.", source: ARGUMENTS }),
  microBatchTokens,
  sharePrefixes: boolean({ default: true, description: "Compute prefixes shared by examples of an update only once." }),
  seed: integer({ common: true, default: 0, min: 0, description: "Seed of the order of examples and of dropout." }),
});

/** Resolved settings of training on a list of examples. */
export type ExampleConfig = Settings<typeof exampleSettings> & { readonly learningRate: number };
