import { ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { returnSettings } from "../shared/returns.js";
import { resolveBatchSize, updateSettings } from "../shared/update-settings.js";
import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { invalidArgument, resolveSettings, type Settings } from "../../../core/settings.js";

const TRL = "TRL 1.16";
const ORLLLAM = "ORLLLaM";

export const LOSS_TYPES = ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"] as const;
export type LossType = (typeof LOSS_TYPES)[number];

/** Settings of the GRPO family (Shao et al. 2024 and its successors) and where each default comes from. */
export const grpoSettings = {
  numGenerations: { default: 8, integer: true, min: 2, description: "samples of a group", source: TRL },
  ...updateSettings,
  numIterations: {
    default: 1,
    integer: true,
    min: 1,
    description: "times that an update goes through its batch",
    source: TRL,
  },
  learningRate: { default: 1e-5, min: 0, description: "AdamW's learning rate", source: ORLLLAM },
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
  lossType: { default: "dapo", choices: LOSS_TYPES, description: "form of the loss", source: "TRL 1.16 and ORLLLaM" },
  importanceSamplingLevel: {
    default: "token",
    choices: ["token", "sequence"],
    description: "what a probability ratio is of; sequence is GSPO",
    source: TRL,
  },
  epsilon: { default: 0.2, min: 0, description: "how far the ratio may fall below 1", source: TRL },
  epsilonHigh: {
    default: undefined,
    min: 0,
    description: "how far the ratio may rise above 1, epsilon by default; for cispo the largest weight",
    source: TRL,
  },
  delta: {
    default: undefined,
    // At 1 and below nothing would have a gradient, since an update begins with ratios of 1.
    above: 1,
    description: "largest ratio where the advantage is negative (two-sided clipping)",
    source: TRL,
  },
  beta: { default: 0, min: 0, description: "weight of the divergence from the reference policy", source: TRL },
  useBiasCorrectionKl: {
    default: true,
    description: "weight the divergence by the ratio, as its tokens are the old policy's",
    source: TRL,
  },
  sapoTemperaturePos: { default: 1, above: 0, description: "sapo's temperature, positive advantages", source: TRL },
  sapoTemperatureNeg: { default: 1.05, above: 0, description: "sapo's temperature, other advantages", source: TRL },
  vespoKPos: { default: 2, min: 0, description: "vespo's power, advantages of at least 0", source: TRL },
  vespoLambdaPos: { default: 3, min: 0, description: "vespo's decay, advantages of at least 0", source: TRL },
  vespoKNeg: { default: 3, min: 0, description: "vespo's power, negative advantages", source: TRL },
  vespoLambdaNeg: { default: 2, min: 0, description: "vespo's decay, negative advantages", source: TRL },
  offPolicyMaskThreshold: {
    default: undefined,
    min: 0,
    description: "sequences of negative advantage that diverge more than this, in nats a token, do not count",
    source: TRL,
  },
  topEntropyQuantile: {
    default: 1,
    above: 0,
    max: 1,
    description: "share of the tokens that train the policy: those of the highest entropy",
    source: TRL,
  },
  entropyCoef: { default: 0, min: 0, description: "weight of the entropy bonus", source: TRL },
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: "constant, as in TRL 1.16" },
  ...returnSettings,
  grouping: {
    default: "start",
    choices: ["start", "observation", "batch"],
    description: "which episodes make a group: that start alike, that meet the same observation, or all of an update",
    source: "TRL 1.16 (start)",
  },
  baseline: {
    default: "step",
    choices: ["step", "group", "batch", "none"],
    description: "whose mean is taken off: of the same step in the group, of the group, of the update, or nobody's",
    source: "ORLLLaM",
  },
  scaleRewards: {
    default: "group",
    choices: ["group", "batch", "none"],
    description: "whose standard deviation rewards are divided by",
    source: TRL,
  },
  multiObjectiveAggregation: {
    default: "sum_then_normalize",
    choices: ["sum_then_normalize", "normalize_then_sum"],
    description: "whether several reward functions are normalised together or each by itself",
    source: TRL,
  },
  maskTruncatedCompletions: {
    default: false,
    description: "replies that were cut off do not train the policy",
    source: TRL,
  },
  maxCompletionLength: {
    default: 512,
    integer: true,
    min: 1,
    description: "tokens that a sample has at most; what dr_grpo divides by",
    source: TRL,
  },
} as const;

interface RewardWeights {
  /** With multiObjectiveAggregation "normalize_then_sum", what each function's normalised rewards are multiplied with; 1 by default. */
  readonly rewardWeights?: readonly number[];
}

/** GRPO's configuration, all of it decided. */
export type GrpoConfig = Omit<Settings<typeof grpoSettings>, "epsilonHigh"> & {
  readonly epsilonHigh: number;
} & RewardWeights;
export type GrpoOptions = Partial<Settings<typeof grpoSettings>> & RewardWeights;

/** Settings that only some losses read; given for another they are a mistake. */
const LOSS_TYPES_BY_SETTING: Partial<Record<keyof typeof grpoSettings, readonly LossType[]>> = {
  delta: ["grpo", "bnpo", "dr_grpo", "dapo", "luspo"],
  sapoTemperaturePos: ["sapo"],
  sapoTemperatureNeg: ["sapo"],
  vespoKPos: ["vespo"],
  vespoLambdaPos: ["vespo"],
  vespoKNeg: ["vespo"],
  vespoLambdaNeg: ["vespo"],
};

/**
 * GRPO's configuration; throws INVALID_ARGUMENT for what cannot be, for settings that the loss would not read, and for settings that
 * contradict each other.
 */
export function resolveGrpoConfig({ rewardWeights, ...options }: GrpoOptions = {}): GrpoConfig {
  const config = resolveSettings("GRPO", grpoSettings, options);
  for (const [name, lossTypes] of Object.entries(LOSS_TYPES_BY_SETTING)) {
    const given = options[name as keyof typeof options];
    const isDefault = given === undefined || given === grpoSettings[name as keyof typeof grpoSettings].default;
    if (!isDefault && !lossTypes.includes(config.lossType)) {
      throw invalidArgument(
        `GRPO's ${name} is read by lossType ${lossTypes.join(", ")} only, and lossType is "${config.lossType}".`,
      );
    }
  }
  const baselineSettings = resolveBaseline(config, options);
  const groupSize = config.grouping === "batch" ? 1 : config.numGenerations;
  const batchSize = resolveBatchSize("GRPO", options.batchSize, groupSize, config.batchSize);
  const epsilonHigh = config.epsilonHigh ?? config.epsilon;
  return {
    ...config,
    ...baselineSettings,
    batchSize,
    epsilonHigh,
    ...(rewardWeights === undefined ? {} : { rewardWeights }),
  };
}

/** Who is compared with whom: where nothing was said, what goes with what was. */
function resolveBaseline(
  { grouping, returns, baseline, scaleRewards }: Settings<typeof grpoSettings>,
  given: GrpoOptions,
): Pick<GrpoConfig, "baseline" | "scaleRewards"> {
  const ignoresStep = grouping === "observation" || returns === "episode-return";
  if (ignoresStep && given.baseline === "step") {
    const reason =
      grouping === "observation"
        ? 'grouping "observation" compares turns by what they answered'
        : 'returns "episode-return" credits all turns of an episode alike';
    throw invalidArgument(
      `GRPO's baseline "step" compares turns by their place in the episode, but ${reason}; use "group".`,
    );
  }
  if (grouping === "observation" && given.baseline === "batch")
    throw invalidArgument(
      'GRPO\'s grouping "observation" and baseline "batch" name different peers; leave one of them out.',
    );
  const resolved = ignoresStep && given.baseline === undefined ? "group" : baseline;
  if (resolved !== "none" && resolved !== "batch") return { baseline: resolved, scaleRewards };
  if (given.scaleRewards === "group") {
    throw invalidArgument(
      `GRPO's baseline "${resolved}" does not look at the group, but scaleRewards is "group"; use "batch" or "none".`,
    );
  }
  return { baseline: resolved, scaleRewards: given.scaleRewards ?? (resolved === "batch" ? "batch" : "none") };
}
