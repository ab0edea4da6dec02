import {
  add,
  exp,
  gatherRows,
  input,
  logSoftmax,
  mul,
  mulDims,
  neg,
  pick,
  reduceMax,
  reduceSum,
  reshape,
  sub,
  dim,
} from "../../../engine/graph/index.js";
import type { PolicyNodes } from "../../../models/graphs/index.js";

/**
 * Returns the policy under the constraints that its tokens or actions were sampled with: each
 * decision's log-probability and entropy in the softmax of its alternatives' scores. Unconstrained
 * tokens keep theirs. The inputs come from `constraintFeeds`, the outputs have one entry per
 * decision.
 */
export function constrainedPolicyNodes(policy: PolicyNodes): PolicyNodes {
  const decisions = dim("decisions");
  const width = dim("alternatives");
  const depth = dim("alternative_tokens");
  const tokenIndices = input("decision_routes", "int32", [decisions, width, depth]);
  const weights = input("decision_weights", "float32", [decisions, width, depth]);
  const mask = input("decision_barred", "float32", [decisions, width]);
  const chosen = input("decision_chosen", "int32", [decisions]);
  const first = input("decision_first", "int32", [decisions]);
  const isUnconstrained = input("decision_free", "float32", [decisions]);

  const gathered = gatherRows(policy.logProbs, reshape(tokenIndices, [mulDims(decisions, width, depth)]));
  const scores = add(reduceSum(mul(reshape(gathered, [decisions, width, depth]), weights), [2]), mask);
  const choiceLogProbs = logSoftmax(scores);
  const isConstrained = sub(1, isUnconstrained);
  const choiceEntropy = neg(reduceSum(mul(exp(choiceLogProbs), choiceLogProbs), [1]));
  return {
    selected: decisions,
    logProbs: add(mul(isConstrained, pick(choiceLogProbs, chosen)), mul(isUnconstrained, pick(scores, chosen))),
    maxLogProbs: add(
      mul(isConstrained, reduceMax(choiceLogProbs, [1])),
      mul(isUnconstrained, gatherRows(policy.maxLogProbs, first)),
    ),
    entropy:
      policy.entropy && add(mul(isConstrained, choiceEntropy), mul(isUnconstrained, gatherRows(policy.entropy, first))),
    hidden: gatherRows(policy.hidden, first),
    values: policy.values && gatherRows(policy.values, first),
  };
}
