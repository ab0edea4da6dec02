import { abs, add, clip, exp, log, maximum, mul, neg, reduceSum, sub, type Node } from "../../../engine/graph/index.js";

/** pi(token) / pi_old(token) at each token. */
export function probabilityRatio(logProbs: Node, oldLogProbs: Node): Node {
  return exp(sub(logProbs, oldLogProbs));
}

/** Clipping range of the ratio around 1. */
export interface ClipRange {
  readonly epsilon: number;
  readonly epsilonHigh: number;
}

/** Returns the bounds of unclipped ratios in float32, the precision of ratios. */
export function ratioBounds({ epsilon, epsilonHigh }: ClipRange): { readonly low: number; readonly high: number } {
  return { low: Math.fround(1 - epsilon), high: Math.fround(1 + epsilonHigh) };
}

/**
 * Builds both terms of PPO's clipped surrogate (Schulman et al. 2017, eq. 7) as losses; the larger
 * one counts.
 */
export function clippedSurrogate(
  ratio: Node,
  advantages: Node,
  range: ClipRange,
): { readonly loss: Node; readonly unclipped: Node; readonly clipped: Node } {
  const unclipped = neg(mul(ratio, advantages));
  const { low, high } = ratioBounds(range);
  const clipped = neg(mul(clip(ratio, low, high), advantages));
  return { loss: maximum(unclipped, clipped), unclipped, clipped };
}

/** Builds the sum of w_t x_t: the mean over tokens for weights of 1 / tokens. */
export function weightedSum(x: Node, weights: Node): Node {
  return reduceSum(mul(x, weights));
}

/** Returns log(sigmoid(x)) without overflow; its gradient at 0 is 1/2. */
export function logSigmoid(x: Node): Node {
  const negated = neg(x);
  return neg(add(maximum(negated, 0), log(add(exp(neg(abs(negated))), 1))));
}
