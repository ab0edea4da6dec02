import { mean, type NumberArray } from "./statistics.js";

/** KL estimators that need only the log-probability of the sampled token. */
export const PER_TOKEN_KL = ["kl", "abs", "mse"] as const;
export type PerTokenKl = (typeof PER_TOKEN_KL)[number];

const estimators: Readonly<Record<PerTokenKl, (logRatio: number) => number>> = {
  kl: (logRatio) => logRatio,
  abs: Math.abs,
  mse: (logRatio) => 0.5 * logRatio ** 2,
};

/**
 * Estimates the KL to the reference at each token, [tokens] in nats, from log-probabilities of the
 * sampled tokens: TRL's kl_penalty, Schulman's k1 ("kl"), |k1| ("abs") and k2 ("mse").
 */
export function perTokenKl(kind: PerTokenKl, logProbs: NumberArray, refLogProbs: NumberArray): Float64Array {
  return Float64Array.from(logProbs, (logProb, i) => estimators[kind](logProb - refLogProbs[i]));
}

/**
 * Estimates the KL to the policy that sampled, from probability ratios: the mean of ½ (log ratio)²,
 * Schulman's k2, as TRL's approxkl. In nats; 0 without ratios.
 */
export function approximateKl(ratios: NumberArray): number {
  return ratios.length === 0 ? 0 : mean(Array.from(ratios, (ratio) => estimators.mse(Math.log(ratio))));
}

/** Rewards of tokens: KL penalties, plus scores at the tokens that end turns. */
export interface TokenRewards {
  readonly rewards: Float64Array;
  /** KL penalties alone. */
  readonly nonScoreRewards: Float64Array;
}

/**
 * Computes reward_t = -klCoef * kl_t, plus the scores of the turns that end at token t (Ziegler et
 * al. 2019). `ends[i]` is the token that receives scores[i].
 */
export function tokenRewards(kls: NumberArray, klCoef: number, scores: NumberArray, ends: NumberArray): TokenRewards {
  const nonScoreRewards = Float64Array.from(kls, (kl) => -klCoef * kl);
  const rewards = Float64Array.from(nonScoreRewards);
  for (let i = 0; i < scores.length; i++) rewards[ends[i]] += scores[i];
  return { rewards, nonScoreRewards };
}
