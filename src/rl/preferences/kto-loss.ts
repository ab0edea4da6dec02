import { dim, input, mul, reduceSum, scatterAddRows, sigmoid, sub, type Node } from "../../engine/graph/index.js";
import type { PolicyNodes, LossResult } from "../../models/graphs/index.js";
import { withUnusedValues } from "../algorithms/sft/loss.js";
import type { KtoConfig } from "./kto-settings.js";

/** Number of completions of a micro-batch. */
export const completions = dim("completions");
const perCompletion = (name: string) => input(name, "float32", [completions]);

/**
 * Returns the weighted loss of each completion [completions], given its log-probability under the
 * policy, as TRL's KTOTrainer computes it. Inputs are "reference", its log-probability under the
 * reference policy, "signs", 1 for desirable completions and -1 for the others, "weights", and the
 * scalar "kl".
 */
export function completionLosses(logProbs: Node, { beta }: KtoConfig): Node {
  const advantage = sub(sub(logProbs, perCompletion("reference")), input("kl", "float32", []));
  const value = sigmoid(mul(mul(advantage, beta), perCompletion("signs")));
  return mul(sub(1, value), perCompletion("weights"));
}

/**
 * Returns the sum of the completions' losses, so that the losses of micro-batches add up;
 * "completionIndex" is each token's completion.
 */
export function ktoLoss(policy: PolicyNodes, config: KtoConfig): LossResult {
  const index = input("completionIndex", "int32", [policy.selected]);
  const completion = scatterAddRows(policy.logProbs, index, completions);
  return {
    loss: withUnusedValues(reduceSum(completionLosses(completion, config)), policy),
    statistics: { completion },
  };
}
