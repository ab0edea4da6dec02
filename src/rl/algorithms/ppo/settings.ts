import { ENTROPY_SCHEDULE } from "../shared/entropy-bonus.js";
import { invalidArgument, resolveSettings, type SettingOptions, type Settings } from "../../../core/settings.js";
import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { PER_TOKEN_KL } from "../shared/kl.js";

const TRL = "TRL 0.7.11";
const LLAMAGYM = "LlamaGym 0.1.1";
const OURS = "off, as in TRL 0.7.11";

/**
 * PPO's settings (Schulman et al. 2017, with the KL penalty of Ziegler et al. 2019) and where each default comes from.
 * LlamaGym runs TRL's PPOTrainer with a smaller batch and learning rate.
 */
export const ppoSettings = {
  batchSize: {
    default: 16,
    integer: true,
    min: 1,
    description: "samples that are collected for an update",
    source: LLAMAGYM,
  },
  miniBatchSize: {
    default: 16,
    integer: true,
    min: 1,
    description: "samples of one optimiser step",
    source: LLAMAGYM,
  },
  numPpoEpochs: {
    default: 4,
    integer: true,
    min: 1,
    description: "times that an update goes through its batch",
    source: TRL,
  },
  learningRate: { default: 1e-5, min: 0, description: "Adam's learning rate", source: LLAMAGYM },
  lrSchedulerType: {
    default: "constant",
    choices: SCHEDULES,
    description: "how the learning rate falls over the run",
    source: TRL,
  },
  maxGradNorm: {
    default: undefined,
    above: 0,
    description: "gradients longer than this are scaled down to it",
    source: OURS,
  },
  klPenalty: {
    default: "kl",
    choices: PER_TOKEN_KL,
    description: "estimate of each token's divergence from the reference policy",
    source: TRL,
  },
  adaptiveKl: { default: true, description: "move the KL coefficient towards klTarget", source: TRL },
  initKlCoef: { default: 0.2, min: 0, description: "KL coefficient at the start", source: TRL },
  klTarget: { default: 6, above: 0, description: "divergence in nats a sample that is aimed at", source: TRL },
  klHorizon: { default: 10_000, above: 0, description: "samples over which the KL coefficient adapts", source: TRL },
  gamma: { default: 1, min: 0, max: 1, description: "discount of later rewards", source: TRL },
  lam: { default: 0.95, min: 0, max: 1, description: "lambda of generalised advantage estimation", source: TRL },
  advantageLevel: {
    default: "token",
    choices: ["token", "turn"],
    description: "whether gamma and lam count tokens or turns",
    source: TRL,
  },
  rewardScale: { default: 1, above: 0, description: "Factor applied to every reward.", source: "LlamaGymEDU" },
  rewardScaling: {
    default: false,
    description: "divide rewards by the root mean square of the returns so far, where that is more than 1",
    source: "off, as in TRL 0.7.11; after Gymnasium's NormalizeReward",
  },
  rewardClip: {
    default: undefined,
    above: 0,
    description: "rewards (scaled, where they are) are held within plus and minus this",
    source: "off, as score_clip in TRL 0.7.11",
  },
  whitenRewards: { default: false, description: "scale the batch's rewards to variance 1", source: TRL },
  whitenAdvantages: { default: true, description: "bring the batch's advantages to mean 0, variance 1", source: TRL },
  cliprange: { default: 0.2, above: 0, description: "how far the ratio may move from 1", source: TRL },
  cliprangeValue: { default: 0.2, above: 0, description: "how far a value may move from the old one", source: TRL },
  vfCoef: { default: 0.1, min: 0, description: "weight of the value loss", source: TRL },
  valueWarmup: {
    default: 0,
    integer: true,
    min: 0,
    description: "first updates that train the value head alone",
    source: OURS,
  },
  entropyCoef: { default: 0, min: 0, description: "weight of the entropy bonus", source: OURS },
  entropySchedulerType: { ...ENTROPY_SCHEDULE, source: OURS },
  ratioThreshold: { default: 10, above: 1, description: "a minibatch of a larger mean ratio is skipped", source: TRL },
  targetKl: {
    aliases: [{ name: "useTargetKl", value: 0.02 }],
    default: undefined,
    above: 0,
    description: "an update ends before a step whose approximate KL is above 1.5 times this",
    source: OURS,
  },
} as const;

export type PpoConfig = Settings<typeof ppoSettings>;
export type PpoOptions = SettingOptions<typeof ppoSettings>;

/** PPO's configuration, all of it decided; throws INVALID_ARGUMENT for what cannot be. */
export function resolvePpoConfig(options: PpoOptions = {}): PpoConfig {
  const { batchSize } = options;
  const config = resolveSettings("PPO", ppoSettings, {
    ...options,
    // A smaller batch is its own minibatch unless one is asked for.
    miniBatchSize:
      options.miniBatchSize ??
      (batchSize === undefined ? undefined : Math.min(batchSize, ppoSettings.miniBatchSize.default)),
  });
  if (config.miniBatchSize > config.batchSize) {
    throw invalidArgument(
      `PPO's miniBatchSize is ${config.miniBatchSize}, but a batch has only ${config.batchSize} samples (batchSize).`,
    );
  }
  return config;
}
