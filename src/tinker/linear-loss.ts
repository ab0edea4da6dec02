import { toData, type TargetSequence, type TargetSupport } from "./token-sequences.js";
import type { TrainingDatum } from "./wire/forward-backward.js";

/** Sequences with the weights of their targets in a loss -sum(weights * logProbs). */
export interface WeightedSequences {
  readonly sequences: readonly TargetSequence[];
  readonly logProbs: Float32Array;
  readonly weights: Float32Array;
}

/**
 * Returns data whose loss has the gradient of -sum(weights * logProbs). A service that averages
 * divides by sums of weights, so that it gets the loss as ratios with advantages: at the policy
 * that they were scored with, their gradient is the same, and the divisors are known.
 */
export function toLinearLoss(
  gradient: readonly WeightedSequences[],
  isMean: boolean,
  support?: TargetSupport,
): { readonly lossFn: string; readonly data: readonly TrainingDatum[] } {
  if (!isMean) {
    const data = gradient.flatMap(({ sequences, weights }) =>
      toData(sequences, { weights: (i) => weights[i] }, support),
    );
    return { lossFn: "cross_entropy", data };
  }
  const count = gradient.reduce((sum, { sequences }) => sum + sequences.length, 0);
  const data = gradient.flatMap(({ sequences, weights, logProbs }) =>
    toData(sequences, {
      logprobs: (i) => logProbs[i],
      advantages: (i, { tokens }) => weights[i] * (tokens.length - 1) * count,
    }),
  );
  return { lossFn: "importance_sampling", data };
}
