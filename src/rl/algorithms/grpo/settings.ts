import { ENTROPY_MIN_RATE, ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { adaptiveEntropySettings, checkAdaptiveEntropy } from "../shared/adaptive-entropy.js";
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
import {
  boolean,
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  type Settings,
} from "../../../core/settings.js";

const TRL = "TRL 1.16";
const ORLLLAM = "ORLLLaM";

export const LOSS_TYPES = ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"] as const;
export type LossType = (typeof LOSS_TYPES)[number];

/**
 * Settings of the GRPO family (Shao et al. 2024 and its successors) and where each default comes
 * from.
 */
export const grpoSettings = defineSettings({
  numGenerations: integer({ default: 8, min: 2, description: "Number of generations per group.", source: TRL }),
  ...updateSettings,
  numIterations: integer({ default: 1, min: 1, description: "Number of optimization epochs per update.", source: TRL }),
  learningRate: number({
    common: true,
    default: 1e-5,
    min: 0,
    description: "Learning rate of AdamW.",
    source: ORLLLAM,
  }),
  lrSchedulerType: LR_SCHEDULE,
  ...optimizerSettings,
  maxGradNorm: MAX_GRAD_NORM,
  lossType: choice({
    default: "dapo",
    choices: LOSS_TYPES,
    description: "Loss variant.",
    source: "TRL 1.16 and ORLLLaM",
  }),
  importanceSamplingLevel: choice({
    default: "token",
    choices: ["token", "sequence"],
    description: "Level of the importance sampling ratio; sequence is GSPO.",
    source: TRL,
  }),
  epsilon: number({ default: 0.2, min: 0, description: "Lower clipping range of the ratio.", source: TRL }),
  epsilonHigh: number({
    min: 0,
    description: "Upper clipping range of the ratio. Default: epsilon. For cispo the maximum weight.",
    source: TRL,
  }),
  delta: number({
    // At 1 and below nothing would have a gradient, since an update begins with ratios of 1.
    above: 1,
    description: "Upper bound of the ratio for negative advantages (two-sided clipping).",
    source: TRL,
  }),
  beta: number({
    default: 0,
    min: 0,
    description: "Weight of the KL divergence from the reference policy.",
    source: TRL,
  }),
  ...referenceSettings,
  useBiasCorrectionKl: boolean({
    default: true,
    description: "Weight the KL divergence by the importance sampling ratio.",
    source: TRL,
  }),
  sapoTemperaturePos: number({
    default: 1,
    above: 0,
    description: "Temperature of sapo for positive advantages.",
    source: TRL,
  }),
  sapoTemperatureNeg: number({
    default: 1.05,
    above: 0,
    description: "Temperature of sapo for other advantages.",
    source: TRL,
  }),
  vespoKPos: number({ default: 2, min: 0, description: "Power of vespo for advantages of at least 0.", source: TRL }),
  vespoLambdaPos: number({
    default: 3,
    min: 0,
    description: "Decay of vespo for advantages of at least 0.",
    source: TRL,
  }),
  vespoKNeg: number({ default: 3, min: 0, description: "Power of vespo for negative advantages.", source: TRL }),
  vespoLambdaNeg: number({ default: 2, min: 0, description: "Decay of vespo for negative advantages.", source: TRL }),
  offPolicyMaskThreshold: number({
    min: 0,
    description: "Mask sequences with a negative advantage and a divergence above this, in nats per token.",
    source: TRL,
  }),
  topEntropyQuantile: number({
    default: 1,
    above: 0,
    max: 1,
    description: "Fraction of tokens, by highest entropy, in the policy loss.",
    source: TRL,
  }),
  entropyCoef: number({ default: 0, min: 0, description: "Weight of the entropy bonus.", source: TRL }),
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: "constant, as in TRL 1.16" },
  entropyMinRate: ENTROPY_MIN_RATE,
  ...adaptiveEntropySettings,
  ...returnSettings,
  grouping: choice({
    default: "start",
    choices: ["start", "observation", "batch"],
    description: "Episodes that form a group: same start, same observation, or all of an update.",
    source: "TRL 1.16 (start)",
  }),
  baseline: choice({
    default: "step",
    choices: ["step", "group", "batch", "none"],
    description: "Mean subtracted from returns: of the same step in the group, of the group, of the update, or none.",
    source: "ORLLLaM",
  }),
  scaleRewards: choice({
    default: "group",
    choices: ["group", "batch", "none"],
    description: "Standard deviation that rewards are divided by.",
    source: TRL,
  }),
  multiObjectiveAggregation: choice({
    default: "sum_then_normalize",
    choices: ["sum_then_normalize", "normalize_then_sum"],
    description: "Whether reward functions are normalized together or separately.",
    source: TRL,
  }),
  maskTruncatedCompletions: boolean({ description: "Exclude truncated completions from the loss.", source: TRL }),
  maxCompletionLength: {
    ...MAX_COMPLETION_LENGTH,
    description: "Maximum number of tokens per completion; the divisor of dr_grpo.",
  },
});

interface RewardWeights {
  /**
   * With multiObjectiveAggregation "normalize_then_sum", weights of the functions' normalized
   * rewards. Default 1.
   */
  readonly rewardWeights?: readonly number[];
}

/** Resolved settings of GRPO. */
export type GrpoConfig = Omit<Settings<typeof grpoSettings>, "epsilonHigh"> & {
  readonly epsilonHigh: number;
} & RewardWeights;
/** Settings of GRPO; defaults fill in the rest. */
export type GrpoOptions = Partial<Settings<typeof grpoSettings>> & RewardWeights;

/** Settings that only some loss types read. */
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
 * Resolves GRPO's settings.
 * @throws INVALID_ARGUMENT for invalid settings, for settings that the loss type does not read, and
 * for conflicting ones.
 */
export function resolveGrpoConfig({ rewardWeights, ...options }: GrpoOptions = {}): GrpoConfig {
  const config = resolveSettings("GRPO", grpoSettings, options);
  for (const [name, lossTypes] of Object.entries(LOSS_TYPES_BY_SETTING)) {
    const given = options[name as keyof typeof options];
    const isDefault = given === undefined || given === grpoSettings[name as keyof typeof grpoSettings].default;
    if (!isDefault && !lossTypes.includes(config.lossType))
      throw invalidArgument(
        `GRPO's ${name} is read by lossType ${lossTypes.join(", ")} only, and lossType is "${config.lossType}".`,
      );
  }
  checkReference("GRPO", "beta", config);
  checkAdaptiveEntropy("GRPO", config);
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

/**
 * Resolves the defaults of `baseline` and `scaleRewards`, which depend on each other and on
 * `grouping` and `returns`.
 */
function resolveBaseline(
  { grouping, returns, baseline, scaleRewards }: Settings<typeof grpoSettings>,
  given: GrpoOptions,
): Pick<GrpoConfig, "baseline" | "scaleRewards"> {
  const ignoresStep = grouping === "observation" || returns === "episode-return";
  if (ignoresStep && given.baseline === "step") {
    const reason =
      grouping === "observation"
        ? 'grouping "observation" compares turns by what they answered'
        : 'returns "episode-return" gives all turns of an episode the same return';
    throw invalidArgument(
      `GRPO's baseline "step" compares turns by their place in the episode, but ${reason}; use "group".`,
    );
  }
  if (grouping === "observation" && given.baseline === "batch")
    throw invalidArgument('GRPO\'s grouping "observation" and baseline "batch" conflict; omit one of them.');
  const resolved = ignoresStep && given.baseline === undefined ? "group" : baseline;
  if (resolved !== "none" && resolved !== "batch") return { baseline: resolved, scaleRewards };
  if (given.scaleRewards === "group")
    throw invalidArgument(
      `GRPO's baseline "${resolved}" does not look at the group, but scaleRewards is "group"; use "batch" or "none".`,
    );
  return { baseline: resolved, scaleRewards: given.scaleRewards ?? (resolved === "batch" ? "batch" : "none") };
}
