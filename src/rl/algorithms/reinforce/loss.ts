import { cast, input, less, mul, square, sub, type Node } from "../../../engine/graph/index.js";
import type { PolicyNodes } from "../../../models/graphs/policy-nodes.js";
import type { LossResult } from "../../../models/graphs/training-graph.js";
import type { FloatTensor } from "../../../engine/tensor/tensor.js";
import { checkEntropy, entropyFactorInput, entropyWeight } from "../shared/entropy-bonus.js";
import { floatVector } from "../shared/sequence-nodes.js";
import type { NumberArray } from "../shared/statistics.js";
import { clippedSurrogate, probabilityRatio, weightedSum } from "../shared/clipped-surrogate.js";
import type { ReinforceConfig } from "./settings.js";

/** What REINFORCE++'s loss needs for each trained token besides the policy's nodes; each is [selected]. */
export interface ReinforceTokens {
  /** Log-probability when the token was sampled. */
  readonly oldLogProbs: NumberArray;
  readonly advantages: NumberArray;
}

/**
 * REINFORCE++'s loss (Hu et al. 2025): PPO's clipped surrogate, mean over the tokens of the optimiser step, without a critic; less
 * entropyCoef times the entropy. With weights of 1 / (tokens of the step) runs add up to the whole, statistics too.
 * Throws INVALID_ARGUMENT without entropies where they are weighted.
 */
export function reinforceLoss(
  { selected, logProbs, entropy }: Pick<PolicyNodes, "selected" | "logProbs" | "entropy">,
  { epsilon, entropyCoef }: Pick<ReinforceConfig, "epsilon" | "entropyCoef">,
): LossResult {
  checkEntropy("REINFORCE++", entropyCoef, entropy);
  const perToken = (name: string) => input(name, "float32", [selected]);
  const [oldLogProbs, advantages, weights] = [perToken("oldLogProbs"), perToken("advantages"), perToken("weights")];
  const mean = (x: Node) => weightedSum(x, weights);
  const ratio = probabilityRatio(logProbs, oldLogProbs);
  const { loss, unclipped, clipped } = clippedSurrogate(ratio, advantages, { epsilon, epsilonHigh: epsilon });
  const policyLoss = mean(loss);
  const meanEntropy = entropy === undefined ? undefined : mean(entropy);
  return {
    loss: entropyCoef === 0 ? policyLoss : sub(policyLoss, mul(meanEntropy!, entropyWeight(entropyCoef))),
    statistics: {
      policyLoss,
      ...(meanEntropy === undefined ? {} : { entropy: meanEntropy }),
      approxKl: mul(mean(square(sub(logProbs, oldLogProbs))), 0.5),
      clipFraction: mean(cast(less(unclipped, clipped), "float32")),
      ratio: mean(ratio),
    },
  };
}

/**
 * The inputs of reinforceLoss for a run that has these of the `total` tokens of its optimiser step. `entropyFactor` is wanted where
 * there is an entropy bonus.
 */
export function reinforceInputs(
  { oldLogProbs, advantages }: ReinforceTokens,
  { total = oldLogProbs.length, entropyFactor }: { readonly total?: number; readonly entropyFactor?: number } = {},
): Record<string, FloatTensor> {
  return {
    oldLogProbs: floatVector(oldLogProbs),
    advantages: floatVector(advantages),
    weights: floatVector(new Float32Array(oldLogProbs.length).fill(1 / total)),
    ...entropyFactorInput(entropyFactor),
  };
}
