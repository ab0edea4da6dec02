import { ENTROPY_MIN_RATE, ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { invalidArgument } from "../../../core/errors.js";
import {
  boolean,
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  type SettingOptions,
  type Settings,
} from "../../../core/settings.js";
import {
  adamSettings,
  checkReference,
  KL_PENALTY,
  LR_SCHEDULE,
  referenceSettings,
  scheduleSettings,
} from "../shared/update-settings.js";

const TRL = "TRL 0.7.11";
const LLAMAGYM = "LlamaGym 0.1.1";
const OURS = "off, as in TRL 0.7.11";

/**
 * Settings of PPO (Schulman et al. 2017, with the KL penalty of Ziegler et al. 2019). LlamaGym runs
 * TRL's PPOTrainer with a smaller batch and learning rate.
 */
export const ppoSettings = defineSettings({
  batchSize: integer({
    common: true,
    default: 16,
    min: 1,
    description: "Number of turns per update.",
    source: LLAMAGYM,
  }),
  miniBatchSize: integer({
    default: 16,
    min: 1,
    description: "Number of samples per optimizer step.",
    source: LLAMAGYM,
  }),
  numPpoEpochs: integer({ default: 4, min: 1, description: "Number of optimization epochs per update.", source: TRL }),
  learningRate: number({
    common: true,
    default: 1e-5,
    min: 0,
    description: "Learning rate of Adam.",
    source: LLAMAGYM,
  }),
  valueHeadLearningRate: number({
    above: 0,
    description: "Learning rate of the value head. Default: learningRate.",
    source: "learningRate, as in TRL 0.7.11",
  }),
  lrSchedulerType: { ...LR_SCHEDULE, default: "constant", source: TRL },
  ...scheduleSettings,
  ...adamSettings,
  maxGradNorm: number({ above: 0, description: "Maximum gradient norm for clipping.", source: OURS }),
  klPenalty: { ...KL_PENALTY, source: TRL },
  adaptiveKl: boolean({ default: true, description: "Adapt the KL coefficient towards klTarget.", source: TRL }),
  initKlCoef: number({ default: 0.2, min: 0, description: "Initial KL coefficient.", source: TRL }),
  klTarget: number({ default: 6, above: 0, description: "Target KL divergence in nats per sample.", source: TRL }),
  klHorizon: number({
    default: 10_000,
    above: 0,
    description: "Number of samples over which the KL coefficient adapts.",
    source: TRL,
  }),
  ...referenceSettings,
  gamma: number({ default: 1, min: 0, max: 1, description: "Discount factor.", source: TRL }),
  lam: number({
    default: 0.95,
    min: 0,
    max: 1,
    description: "Lambda of generalized advantage estimation.",
    source: TRL,
  }),
  advantageLevel: choice({
    default: "token",
    choices: ["token", "turn"],
    description: "Whether gamma and lam apply per token or per turn.",
    source: TRL,
  }),
  stateBaseline: boolean({
    description:
      "Average the value head's values with the returns of other turns of the batch that have the same prompt. Requires advantageLevel turn.",
    source: "off, as in TRL 0.7.11; after the anchor states of GiGPO",
  }),
  rewardScale: number({
    default: 1,
    above: 0,
    max: 1e6,
    description: "Factor applied to every reward.",
    source: "LlamaGymEDU",
  }),
  rewardScaling: boolean({
    description: "Divide rewards by the root mean square of past returns, if above 1 or at first below 0.05.",
    source: "off, as in TRL 0.7.11; after Gymnasium's NormalizeReward",
  }),
  rewardClip: number({
    above: 0,
    description: "Clip rewards to plus and minus this, after scaling.",
    source: "off, as score_clip in TRL 0.7.11",
  }),
  whitenRewards: boolean({ description: "Scale the rewards of a batch to variance 1.", source: TRL }),
  whitenAdvantages: boolean({
    default: true,
    description: "Normalize the advantages of a batch to mean 0 and variance 1.",
    source: TRL,
  }),
  minAdvantageStd: number({
    default: 0,
    min: 0,
    max: 1,
    description:
      "Least standard deviation that whitenAdvantages divides by, as a share of the root mean square of returns: near the best policy, advantages are noise.",
    source: "0, as in TRL 0.7.11",
  }),
  cliprange: number({ default: 0.2, above: 0, description: "Clipping range of the ratio.", source: TRL }),
  cliprangeValue: number({
    default: 0.2,
    above: 0,
    description: "Clipping range of values around the old ones.",
    source: TRL,
  }),
  vfCoef: number({ default: 0.1, min: 0, description: "Weight of the value loss.", source: TRL }),
  valueWarmup: integer({
    default: 0,
    min: 0,
    description: "Number of initial updates that train only the value head.",
    source: OURS,
  }),
  entropyCoef: number({ default: 0, min: 0, description: "Weight of the entropy bonus.", source: OURS }),
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: OURS },
  entropyMinRate: { ...ENTROPY_MIN_RATE, source: OURS },
  explorationBonus: number({
    default: 0,
    min: 0,
    description:
      "Bonus of a turn that leads to a prompt which its trajectory did not have yet, 0 where none comes again. It is in the unit of scaled rewards and added to advantages alone. For rare successes: it falls to 0 with the first 64 turns of a positive reward, or ends with the best reward so far.",
    source: OURS,
  }),
  ratioThreshold: number({
    default: 10,
    above: 1,
    description: "Skip minibatches with a mean ratio above this.",
    source: TRL,
  }),
  targetKl: number({
    aliases: [{ name: "useTargetKl", value: 0.02, off: 0 }],
    default: 0,
    min: 0,
    description: "End an update before a step whose approximate KL exceeds 1.5 times this. 0: never.",
    source: OURS,
  }),
});

/** Resolved settings of PPO. */
export type PpoConfig = Settings<typeof ppoSettings>;
/** Settings of PPO; defaults fill in the rest. */
export type PpoOptions = SettingOptions<typeof ppoSettings>;

/** Resolves PPO's settings. @throws INVALID_ARGUMENT for invalid settings. */
export function resolvePpoConfig(options: PpoOptions = {}): PpoConfig {
  const { batchSize } = options;
  const config = resolveSettings("PPO", ppoSettings, {
    ...options,
    // By default a smaller batch is one minibatch.
    miniBatchSize:
      options.miniBatchSize ??
      (batchSize === undefined ? undefined : Math.min(batchSize, ppoSettings.miniBatchSize.default)),
  });
  checkReference("PPO", "initKlCoef", config);
  if (config.stateBaseline && config.advantageLevel !== "turn")
    throw invalidArgument('PPO\'s stateBaseline averages returns of turns. Also set advantageLevel to "turn".');
  if (config.miniBatchSize > config.batchSize)
    throw invalidArgument(
      `PPO's miniBatchSize is ${config.miniBatchSize}, but a batch has only ${config.batchSize} samples (batchSize).`,
    );
  return config;
}
