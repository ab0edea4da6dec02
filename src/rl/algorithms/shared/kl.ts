import { mean, type NumberArray } from "./statistics.js";

/** Estimates of a token's divergence that need the log-probability of that token alone. */
export const PER_TOKEN_KL = ["kl", "abs", "mse"] as const;
export type PerTokenKl = (typeof PER_TOKEN_KL)[number];

const estimators: Readonly<Record<PerTokenKl, (logRatio: number) => number>> = {
  kl: (logRatio) => logRatio,
  abs: Math.abs,
  mse: (logRatio) => 0.5 * logRatio ** 2,
};

/**
 * Divergence of the policy from the reference at each token, estimated from the log-probabilities of the tokens that were
 * sampled: TRL's kl_penalty, Schulman's k1 ("kl"), |k1| ("abs") and k2 ("mse"). [tokens], in nats.
 */
export function perTokenKl(kind: PerTokenKl, logProbs: NumberArray, refLogProbs: NumberArray): Float64Array {
  return Float64Array.from(logProbs, (logProb, i) => estimators[kind](logProb - refLogProbs[i]));
}

/**
 * How far the policy is from the one that sampled, from the ratios of their probabilities: the mean of ½ (log ratio)², Schulman's
 * k2, as TRL's approxkl. In nats; 0 without ratios.
 */
export function approximateKl(ratios: NumberArray): number {
  return ratios.length === 0 ? 0 : mean(Array.from(ratios, (ratio) => estimators.mse(Math.log(ratio))));
}

/**
 * The divergence itself, from the log-probabilities of the whole vocabulary [tokens * vocabulary] under both policies:
 * TRL's kl_penalty "full". [tokens], in nats.
 */
export function fullKl(logProbs: NumberArray, refLogProbs: NumberArray, vocabulary: number): Float64Array {
  const kls = new Float64Array(logProbs.length / vocabulary);
  for (let i = 0; i < logProbs.length; i++)
    kls[Math.floor(i / vocabulary)] += Math.exp(logProbs[i]) * (logProbs[i] - refLogProbs[i]);
  return kls;
}

/** Rewards of tokens: each one's KL penalty, and scores on top at the tokens that earned them. */
export interface TokenRewards {
  readonly rewards: Float64Array;
  /** The penalties alone. */
  readonly nonScoreRewards: Float64Array;
}

/**
 * reward_t = -klCoef * kl_t, plus the scores of the turns or replies that end at token t (Ziegler et al. 2019).
 * `ends[i]` is the token that scores[i] is given for, the last of its turn.
 */
export function tokenRewards(kls: NumberArray, klCoef: number, scores: NumberArray, ends: NumberArray): TokenRewards {
  const nonScoreRewards = Float64Array.from(kls, (kl) => -klCoef * kl);
  const rewards = Float64Array.from(nonScoreRewards);
  for (let i = 0; i < scores.length; i++) rewards[ends[i]] += scores[i];
  return { rewards, nonScoreRewards };
}
