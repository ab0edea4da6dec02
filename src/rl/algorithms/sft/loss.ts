import { add, cast, input, lessEqual, mul, neg, reduceSum, type Node } from "../../../engine/graph/index.js";
import type { PolicyNodes, LossResult } from "../../../models/graphs/index.js";

/**
 * Returns the cross-entropy -sum(weights * logProbs) over the loss tokens [selected]. With weights
 * of 1 / n, n the loss tokens of an update, it is their mean in nats, and the losses of
 * micro-batches add up. The statistic `correct` counts the tokens that are the argmax of their
 * distribution, as TRL's `mean_token_accuracy` does.
 */
export function crossEntropyLoss(policy: PolicyNodes): LossResult {
  const { logProbs, maxLogProbs, selected } = policy;
  const weights = input("weights", "float32", [selected]);
  const loss = neg(reduceSum(mul(weights, logProbs)));
  return {
    loss: withUnusedValues(loss, policy),
    statistics: { correct: reduceSum(cast(lessEqual(maxLogProbs, logProbs), "float32")) },
  };
}

/**
 * Adds a model's values to a loss without them: every trainable parameter needs a gradient, and a
 * value head's is 0.
 */
export function withUnusedValues(loss: Node, { values }: PolicyNodes): Node {
  return values === undefined ? loss : add(loss, mul(0, reduceSum(values)));
}
