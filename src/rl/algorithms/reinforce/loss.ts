import { cast, less, mul, square, sub, type Node } from "../../../engine/graph/index.js";
import type { LossResult } from "../../../models/graphs/index.js";
import { checkEntropy } from "../shared/entropy-bonus.js";
import { clippedSurrogate, probabilityRatio, weightedSum } from "../shared/clipped-surrogate.js";
import type { LossNodes } from "../shared/loss-nodes.js";
import type { ReinforceConfig } from "./settings.js";

/**
 * Builds REINFORCE++'s loss (Hu et al. 2025): PPO's clipped surrogate without a critic, minus
 * entropyCoef times the entropy, as a mean over the decisions of the optimizer step.
 * @throws INVALID_ARGUMENT without entropies where they are weighted.
 */
export function reinforceLoss(
  { logProbs, entropy, perToken, weights, entropyFactor }: LossNodes,
  { epsilon, entropyCoef }: Pick<ReinforceConfig, "epsilon" | "entropyCoef">,
): LossResult {
  checkEntropy("REINFORCE++", entropyCoef, entropy);
  const [oldLogProbs, advantages] = [perToken("oldLogProbs"), perToken("advantages")];
  const mean = (x: Node) => weightedSum(x, weights);
  const ratio = probabilityRatio(logProbs, oldLogProbs);
  const { loss, unclipped, clipped } = clippedSurrogate(ratio, advantages, { epsilon, epsilonHigh: epsilon });
  const policyLoss = mean(loss);
  const meanEntropy = entropy === undefined ? undefined : mean(entropy);
  return {
    loss: entropyCoef === 0 ? policyLoss : sub(policyLoss, mul(meanEntropy!, mul(entropyFactor, entropyCoef))),
    statistics: {
      policyLoss,
      ...(meanEntropy === undefined ? {} : { entropy: meanEntropy }),
      approxKl: mul(mean(square(sub(logProbs, oldLogProbs))), 0.5),
      clipFraction: mean(cast(less(unclipped, clipped), "float32")),
      ratio: mean(ratio),
      tokenRatio: ratio,
    },
  };
}
