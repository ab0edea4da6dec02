import { add, cast, input, less, mul, neg, reduceSum } from "../../../engine/graph/index.js";
import type { PolicyNodes } from "../../../models/graphs/policy-nodes.js";
import type { LossResult } from "../../../models/graphs/training-graph.js";

/** A token with a higher log-probability has more than half of the probability: it is surely the model's first choice. */
export const CONFIDENT_LOG_PROB = Math.log(0.5);

/**
 * Cross-entropy as a loss to minimise: -sum(weights * logProbs) over the learnt tokens [selected]. With weights of 1 / n,
 * n the learnt tokens of an update, it is their mean in nats, and parts of an update add up.
 */
export function crossEntropyLoss({ logProbs, selected, values }: PolicyNodes): LossResult {
  const weights = input("weights", "float32", [selected]);
  const loss = neg(reduceSum(mul(weights, logProbs)));
  return {
    // Every trained parameter must have a gradient; a value head's is 0, and it stays as it is.
    loss: values === undefined ? loss : add(loss, mul(0, reduceSum(values))),
    statistics: { confident: reduceSum(cast(less(CONFIDENT_LOG_PROB, logProbs), "float32")) },
  };
}
