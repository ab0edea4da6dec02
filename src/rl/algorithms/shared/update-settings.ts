import { boolean, choice, defineSettings, integer, number } from "../../../core/settings.js";
import { invalidArgument } from "../../../core/errors.js";
import { SCHEDULES, isStepSchedule, scheduleFactor, warmupScheduleFactor } from "../../../engine/optim/index.js";
import type { UpdateConfig } from "../algorithm-definition.js";
import { PER_TOKEN_KL } from "./kl.js";

const ARGUMENTS = "TRL 1.16 (Transformers' TrainingArguments)";

/** The setting lrSchedulerType. */
export const LR_SCHEDULE = choice({
  default: "linear",
  choices: SCHEDULES,
  description: "Learning rate schedule.",
  source: ARGUMENTS,
});

/** Arguments of some schedules, `lr_scheduler_kwargs` in Transformers. */
export const scheduleSettings = defineSettings({
  lrMinRate: number({
    default: 0,
    min: 0,
    max: 1,
    description:
      "Final share of the learning rate under cosine_with_min_lr and cosine_warmup_with_min_lr (min_lr_rate), polynomial (lr_end) and warmup_stable_decay (min_lr_ratio).",
    source: ARGUMENTS,
  }),
  lrNumCycles: integer({
    default: 1,
    min: 1,
    description: "Number of cosines under cosine_with_restarts (num_cycles).",
    source: ARGUMENTS,
  }),
  lrPower: number({ default: 1, above: 0, description: "Exponent under polynomial (power).", source: ARGUMENTS }),
  lrDecayRatio: number({
    default: 0.1,
    above: 0,
    max: 1,
    description: "Last share of the steps, in which warmup_stable_decay falls (num_decay_steps).",
    source: ARGUMENTS,
  }),
});

/**
 * Returns a function of the optimizer's steps so far: the learning rate rises in the warm-up, and
 * follows the schedule over the rest of the run, as in Transformers. The run's steps are estimated
 * from its progress, after `steps` of them.
 */
export function learningRateFactor(config: UpdateConfig, progress: number, steps: number): (step: number) => number {
  const { lrSchedulerType: kind = "constant", warmupSteps = 0 } = config;
  if (warmupSteps === 0 && !isStepSchedule(kind)) {
    const factor = scheduleFactor(kind, progress, config);
    return () => factor;
  }
  const totalSteps = progress === 0 ? Infinity : steps / progress;
  return (step) => warmupScheduleFactor({ ...config, kind, warmupSteps, totalSteps }, step);
}

/** The setting maxGradNorm. */
export const MAX_GRAD_NORM = number({
  default: 1,
  above: 0,
  description: "Maximum gradient norm for clipping.",
  source: ARGUMENTS,
});

/** Settings of Adam's moments. */
export const adamSettings = defineSettings({
  adamBeta1: number({
    default: 0.9,
    min: 0,
    max: 0.9999,
    description: "Decay of Adam's first moment.",
    source: ARGUMENTS,
  }),
  adamBeta2: number({
    default: 0.999,
    min: 0,
    max: 0.99999,
    description: "Decay of Adam's second moment.",
    source: ARGUMENTS,
  }),
  adamEpsilon: number({
    default: 1e-8,
    above: 0,
    description: "Number that Adam adds to the root of the second moment.",
    source: ARGUMENTS,
  }),
});

/** Settings of AdamW and its warm-up. */
export const optimizerSettings = defineSettings({
  ...scheduleSettings,
  warmupSteps: integer({
    default: 0,
    min: 0,
    description: "Number of optimizer steps in which the learning rate rises from 0; the schedule follows them.",
    source: ARGUMENTS,
  }),
  weightDecay: number({
    default: 0,
    min: 0,
    description: "Weight decay of AdamW, on all but biases and norms.",
    source: ARGUMENTS,
  }),
  ...adamSettings,
});

/** Settings of a reference policy that follows the trained one. */
export const referenceSettings = defineSettings({
  syncRefModel: boolean({
    description:
      "Move the reference policy towards the trained one every refModelSyncSteps optimizer steps. It begins as a copy of the trained parameters.",
    source: "TRL 1.16",
  }),
  refModelMixupAlpha: number({
    default: 0.6,
    above: 0,
    max: 1,
    description:
      "Share of the way that syncRefModel moves the reference policy: alpha * policy + (1 - alpha) * reference.",
    source: "TRL 1.16",
  }),
  refModelSyncSteps: integer({
    default: 512,
    min: 1,
    description: "Number of optimizer steps between updates of the reference policy by syncRefModel.",
    source: "TRL 1.16",
  }),
});

/**
 * Checks that a synchronized reference has a weight, the value of the setting `klSetting`.
 * @throws INVALID_ARGUMENT
 */
export function checkReference<Name extends string>(
  algorithm: string,
  klSetting: Name,
  config: { readonly syncRefModel: boolean } & Readonly<Record<Name, number>>,
): void {
  if (config.syncRefModel && config[klSetting] === 0)
    throw invalidArgument(
      `${algorithm}'s \`syncRefModel\` moves the reference policy, which \`${klSetting}\` 0 does not use. Set \`${klSetting}\` above 0, or \`syncRefModel\` to false.`,
    );
}

/** The setting maxCompletionLength. */
export const MAX_COMPLETION_LENGTH = integer({
  default: 512,
  min: 1,
  description: "Maximum number of tokens per completion.",
  source: "TRL 1.16",
});

/** The setting klPenalty, without its source. */
export const KL_PENALTY = choice({
  default: "kl",
  choices: PER_TOKEN_KL,
  description: "Estimator of the per-token KL divergence from the reference policy.",
});

/** Settings of an update with groups of complete episodes. */
export const updateSettings = defineSettings({
  batchSize: integer({
    default: 8,
    min: 1,
    common: true,
    description: "Number of episodes (completions, for prompts) per update.",
    source: "TRL 1.16 and ORLLLaM",
  }),
  minTurns: integer({
    default: 0,
    min: 0,
    description: "Minimum number of turns per update; more episodes are collected if they are short.",
    source: "off, as in TRL 1.16",
  }),
  miniBatchSize: integer({
    min: 1,
    description: "Number of turns per optimizer step. Default: all turns of the update.",
    source: "one step, as in TRL 1.16",
  }),
  filterGroups: boolean({
    default: true,
    description: "Drop groups with equal returns, unless an entropy bonus or a KL term acts on them.",
    source: "DAPO, not in TRL 1.16",
  }),
  maxResamples: integer({
    default: 1,
    min: 0,
    description: "Maximum number of times dropped groups are resampled.",
    source: "DAPO, not in TRL 1.16",
  }),
  maskTruncatedEpisodes: boolean({
    description: "Exclude episodes that were truncated by a step limit from the loss.",
    source: "DAPO's overlong filtering, off in TRL 1.16",
  }),
});

/**
 * Resolves an update's size to whole groups; by default the smallest multiple of the group size
 * that is not below `defaultSize`.
 * @throws INVALID_ARGUMENT for a size that is no multiple of the group size.
 */
export function resolveBatchSize(
  algorithm: string,
  requested: number | undefined,
  groupSize: number,
  defaultSize: number,
): number {
  if (requested === undefined) return Math.ceil(defaultSize / groupSize) * groupSize;
  if (requested % groupSize === 0) return requested;
  throw invalidArgument(
    `${algorithm}'s batchSize is ${requested}, which groups of ${groupSize} (numGenerations) do not divide. ` +
      `Use ${Math.ceil(requested / groupSize) * groupSize}, or another group size.`,
  );
}
