import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { resolveSettings, type Settings } from "../../../core/settings.js";

const EDU = "LlamaGymEDU";
const TRL = "TRL's SFTConfig";
const OURS = "ours";

/** Settings of supervised fine-tuning, with the source of each default. */
export const sftSettings = {
  learningRate: { default: 1e-4, min: 0, description: "AdamW's learning rate", source: EDU },
  lrSchedulerType: {
    default: "linear",
    choices: SCHEDULES,
    description: "how the learning rate falls over the run",
    source: TRL,
  },
  warmupSteps: { default: 0, integer: true, min: 0, description: "updates over which it first rises", source: TRL },
  batchSize: { default: 8, integer: true, min: 1, description: "examples of an update", source: TRL },
  maxBatchTokens: {
    default: undefined,
    integer: true,
    min: 1,
    description: "tokens of an update, in place of a number of examples",
    source: OURS,
  },
  numTrainEpochs: { default: 3, above: 0, description: "times that all examples are gone through", source: TRL },
  maxSteps: {
    default: undefined,
    integer: true,
    min: 1,
    description: "updates in all, in place of a number of epochs",
    source: TRL,
  },
  maxLength: {
    default: undefined,
    integer: true,
    min: 2,
    description: "tokens of an example at most; the model's context unless given",
    source: OURS,
  },
  overlong: {
    default: "truncate",
    choices: ["truncate", "skip", "error"],
    description: "what becomes of an example that is longer: it loses its end, is left out, or ends the run",
    source: TRL,
  },
  assistantOnlyLoss: {
    default: true,
    description: "Compute the loss on completions only, not on prompts.",
    source: OURS,
  },
  weightDecay: { default: 0, min: 0, description: "AdamW's weight decay", source: TRL },
  beta1: { default: 0.9, min: 0, max: 0.9999, description: "AdamW's first moment's decay", source: TRL },
  beta2: { default: 0.999, min: 0, max: 0.99999, description: "AdamW's second moment's decay", source: TRL },
  maxGradNorm: { default: 1, above: 0, description: "gradients longer than this are scaled down to it", source: TRL },
  microBatchTokens: {
    default: undefined,
    integer: true,
    min: 1,
    description:
      "tokens of one forward and backward pass, fewer where rows are long; an update of more takes several, with the same gradient",
    source: OURS,
  },
  sharePrefixes: { default: true, description: "compute once what examples of an update begin with", source: OURS },
  seed: { default: 0, integer: true, min: 0, description: "order of the examples, and dropout", source: OURS },
} as const;

export type SftConfig = Settings<typeof sftSettings>;
export type SftOptions = Partial<SftConfig>;

/**
 * Resolves the settings.
 *
 * @throws INVALID_ARGUMENT for unknown settings and values out of range.
 */
export function resolveSftConfig(options: SftOptions = {}): SftConfig {
  return resolveSettings("SFT", sftSettings, options);
}
