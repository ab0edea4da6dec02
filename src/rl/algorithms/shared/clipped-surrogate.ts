import { clip, exp, maximum, mul, neg, reduceSum, sub, type Node } from "../../../engine/graph/index.js";

/** pi(token) / pi_old(token) at each token. */
export function probabilityRatio(logProbs: Node, oldLogProbs: Node): Node {
  return exp(sub(logProbs, oldLogProbs));
}

/** How far the ratio may move from 1. */
export interface ClipRange {
  readonly epsilon: number;
  readonly epsilonHigh: number;
}

/** Between which ratios nothing is clipped; in float32, as the ratios are. */
export function ratioBounds({ epsilon, epsilonHigh }: ClipRange): { readonly low: number; readonly high: number } {
  return { low: Math.fround(1 - epsilon), high: Math.fround(1 + epsilonHigh) };
}

/** The two sides of PPO's clipped surrogate (Schulman et al. 2017, eq. 7), as losses: the larger counts. */
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

/** Sum of w_t x_t: the mean over tokens, where the weights are one through their number. */
export function weightedSum(x: Node, weights: Node): Node {
  return reduceSum(mul(x, weights));
}
