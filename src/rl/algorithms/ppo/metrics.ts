import { concatenate, sum } from "../shared/arrays.js";
import { mean, variance, type NumberArray } from "../shared/statistics.js";
import type { PpoConfig } from "./settings.js";
import type { PpoTokens } from "./loss.js";

/** Metric names of ppoLoss's statistics. */
const LOSS_METRICS = {
  loss: "loss",
  policyLoss: "loss/policy_avg",
  valueLoss: "loss/value_avg",
  entropy: "entropy",
  approxKl: "policy/approxkl_avg",
  policyKl: "policy/kl_avg",
  clipFraction: "policy/clipfrac_avg",
  ratio: "val/ratio",
  valuePrediction: "val/vpred",
  valueError: "val/error",
  valueClipFraction: "val/clipfrac_avg",
} as const;

/** Loss and statistics of ppoLoss, summed over the micro-batches of a minibatch. */
export type PpoStatistics = Readonly<Partial<Record<keyof typeof LOSS_METRICS, number>>>;

/** Variances below this fraction of the squared mean are rounding errors. */
const RELATIVE_VARIANCE_TOLERANCE = 1e-10;

/**
 * A minibatch's metrics as TRL's PPOTrainer names them. val/var_explained is 1 - val/error /
 * returns/var: 1 for a perfect critic, 0 for a constant one at the mean, NaN where returns do not
 * vary.
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
    "policy/advantages_mean": mean(advantages),
    "returns/mean": returnMean,
    "returns/var": returnVariance,
    "val/mean": mean(oldValues),
    "val/var": variance(oldValues),
    "val/var_explained": hasVariance ? 1 - (statistics.valueError ?? Number.NaN) / returnVariance : Number.NaN,
  };
}

/** Statistics of a sample; arrays are [tokens]. */
export interface SampleStatistics {
  readonly kls: NumberArray;
  readonly oldLogProbs: NumberArray;
  readonly nonScoreRewards: NumberArray;
  /** Reward from the environment or reward functions, summed over turns. */
  readonly score: number;
}

/**
 * A batch's metrics before it is trained on, as TRL's PPOTrainer names them. objective/kl and
 * objective/entropy are sums over a sample's tokens, their mean over samples; the entropy is
 * estimated from the tokens that were sampled, as -log pi.
 */
export function ppoBatchMetrics(samples: readonly SampleStatistics[], klCoef: number): Record<string, number> {
  const scores = samples.map(({ score }) => score);
  return {
    ...(klCoef === 0 ? {} : { "objective/kl": mean(samples.map(({ kls }) => sum(kls))) }),
    "objective/kl_coef": klCoef,
    "objective/entropy": mean(samples.map(({ oldLogProbs }) => -sum(oldLogProbs))),
    "objective/non_score_reward": mean(concatenate(samples.map(({ nonScoreRewards }) => nonScoreRewards))),
    "objective/scores": mean(scores),
    "objective/scores_std": Math.sqrt(variance(scores)),
  };
}

/**
 * Whether the mean ratio of a minibatch exceeds the threshold, so that its step is discarded (TRL's
 * ratio_threshold).
 */
export function exceedsRatioThreshold(
  { ratio = 1 }: PpoStatistics,
  { ratioThreshold }: Pick<PpoConfig, "ratioThreshold">,
): boolean {
  return ratio > ratioThreshold;
}

/** Whether the approximate KL of a minibatch exceeds 1.5 times `targetKl`. */
export function exceedsTargetKl({ approxKl = 0 }: PpoStatistics, { targetKl }: Pick<PpoConfig, "targetKl">): boolean {
  return targetKl > 0 && approxKl > 1.5 * targetKl;
}
