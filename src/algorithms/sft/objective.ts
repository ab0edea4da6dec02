import { cast, input, less, mul, neg, reduceSum } from "../../graph/index.js";
import type { PolicyNodes } from "../../models/policy.js";
import type { Objective } from "../../models/training-graph.js";

/**
 * Cross-entropy as a loss to minimise: -sum(weights * logProbs) over the trained tokens [selected]. With weights of
 * 1 / n, n the trained tokens of an update, it is their mean in nats.
 * `confident` counts the tokens that the model gives more than half of the probability; they are surely its first choice.
 */
export function crossEntropy({ logProbs, selected }: PolicyNodes): Objective {
  const weights = input("weights", "float32", [selected]);
  const confident = less(Math.log(0.5), logProbs);
  return {
    loss: neg(reduceSum(mul(weights, logProbs))),
    statistics: { confident: reduceSum(cast(confident, "float32")) },
  };
}
