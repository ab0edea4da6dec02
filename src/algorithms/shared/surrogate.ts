import { clip, exp, maximum, mul, neg, reduceSum, sub, type Node } from "../../graph/index.js";

/** pi(token) / pi_old(token) at each token. */
export function probabilityRatio(logProbs: Node, oldLogProbs: Node): Node {
  return exp(sub(logProbs, oldLogProbs));
}

/** The two sides of PPO's clipped surrogate (Schulman et al. 2017, eq. 7), as losses: the larger counts. */
export function clippedSurrogate(
  ratio: Node,
  advantages: Node,
  { low, high }: { readonly low: number; readonly high: number },
): { readonly loss: Node; readonly unclipped: Node; readonly clipped: Node } {
  const unclipped = neg(mul(ratio, advantages));
  const clipped = neg(mul(clip(ratio, 1 - low, 1 + high), advantages));
  return { loss: maximum(unclipped, clipped), unclipped, clipped };
}

/** Sum of w_t x_t: the mean over tokens, where the weights are one through their number. */
export function weightedSum(x: Node, weights: Node): Node {
  return reduceSum(mul(x, weights));
}
