import { concatenate, sum } from "../shared/arrays.js";
import { mean, variance, type NumberArray } from "../shared/statistics.js";
import type { PpoConfig } from "./settings.js";
import type { PpoTokens } from "./loss.js";

/** What ppoLoss gives, by TRL 0.7's names. */
const LOSS_METRICS = {
  loss: "ppo/loss/total",
  policyLoss: "ppo/loss/policy",
  valueLoss: "ppo/loss/value",
  entropy: "ppo/policy/entropy",
  approxKl: "ppo/policy/approxkl",
  policyKl: "ppo/policy/policykl",
  clipFraction: "ppo/policy/clipfrac",
  ratio: "ppo/policy/ratio",
  valuePrediction: "ppo/val/vpred",
  valueError: "ppo/val/error",
  valueClipFraction: "ppo/val/clipfrac",
} as const;

/** Loss and statistics of ppoLoss over a minibatch: the sums of what its runs gave. Entropy only where it was asked for. */
export type PpoStatistics = Readonly<Partial<Record<keyof typeof LOSS_METRICS, number>>>;

/** A variance below this share of the squared mean is rounding. */
const RELATIVE_VARIANCE_TOLERANCE = 1e-10;

/**
 * A minibatch's metrics under the names that TRL 0.7 logs. ppo/val/var_explained is 1 - val/error / returns/var: 1 for a perfect
 * critic, 0 for one that knows the mean, NaN where returns do not vary.
 */
export function ppoMetrics(
  statistics: PpoStatistics,
  { advantages, returns, oldValues }: Omit<PpoTokens, "oldLogProbs">,
): Record<string, number> {
  const present = Object.entries(LOSS_METRICS).filter(([name]) => name in statistics);
  const [returnMean, returnVariance] = [mean(returns), variance(returns)];
  const hasVariance = returnVariance > RELATIVE_VARIANCE_TOLERANCE * returnMean ** 2;
  return {
    ...Object.fromEntries(present.map(([name, metric]) => [metric, statistics[name as keyof PpoStatistics]!])),
    "ppo/policy/advantages_mean": mean(advantages),
    "ppo/returns/mean": returnMean,
    "ppo/returns/var": returnVariance,
    "ppo/val/mean": mean(oldValues),
    "ppo/val/var": variance(oldValues),
    "ppo/val/var_explained": hasVariance ? 1 - (statistics.valueError ?? Number.NaN) / returnVariance : Number.NaN,
  };
}

/** A sample as its metrics need it; arrays are [tokens]. */
export interface SampleStatistics {
  readonly kls: NumberArray;
  readonly oldLogProbs: NumberArray;
  readonly nonScoreRewards: NumberArray;
  /** What the environment or the reward functions gave, all turns together. */
  readonly score: number;
}

/**
 * A batch's metrics before it is trained on, under the names that TRL 0.7 logs. objective/kl and objective/entropy are sums over
 * a sample's tokens, their mean over samples; the entropy is estimated from the tokens that were sampled, as -log pi.
 */
export function ppoBatchMetrics(samples: readonly SampleStatistics[], klCoef: number): Record<string, number> {
  const scores = samples.map(({ score }) => score);
  return {
    ...(klCoef === 0 ? {} : { "objective/kl": mean(samples.map(({ kls }) => sum(kls))) }),
    "objective/kl_coef": klCoef,
    "objective/entropy": mean(samples.map(({ oldLogProbs }) => -sum(oldLogProbs))),
    "ppo/mean_non_score_reward": mean(concatenate(samples.map(({ nonScoreRewards }) => nonScoreRewards))),
    "ppo/mean_scores": mean(scores),
    "ppo/std_scores": Math.sqrt(variance(scores)),
  };
}

/**
 * Whether a minibatch must not train the model: its mean ratio is so large that the old log-probabilities say little (TRL's
 * ratio_threshold, which then takes its losses for 0).
 */
export function exceedsRatioThreshold(
  { ratio = 1 }: PpoStatistics,
  { ratioThreshold }: Pick<PpoConfig, "ratioThreshold">,
): boolean {
  return ratio > ratioThreshold;
}

/** Whether the policy has moved too far in this update: the approximate KL of a minibatch is above 1.5 times `targetKl`. */
export function exceedsTargetKl(
  { approxKl = 0 }: PpoStatistics,
  { targetKl = Infinity }: Pick<PpoConfig, "targetKl">,
): boolean {
  return approxKl > 1.5 * targetKl;
}
