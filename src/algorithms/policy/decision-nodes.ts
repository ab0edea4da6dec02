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
  reduceSum,
  reshape,
  sub,
  symbol,
} from "../../graph/index.js";
import type { PolicyNodes } from "../../models/policy.js";

/**
 * The policy under the constraint that its tokens or actions were drawn with: each decision's log-probability among its
 * alternatives, the softmax of their scores, and the entropy of that choice. Free tokens keep their own. Inputs are those of
 * `choiceFeeds`; everything given has one entry for each decision.
 */
export function decisionNodes(policy: PolicyNodes): PolicyNodes {
  const decisions = symbol("decisions");
  const width = symbol("alternatives");
  const depth = symbol("alternative_tokens");
  const routes = input("decision_routes", "int32", [decisions, width, depth]);
  const weights = input("decision_weights", "float32", [decisions, width, depth]);
  const barred = input("decision_barred", "float32", [decisions, width]);
  const chosen = input("decision_chosen", "int32", [decisions]);
  const first = input("decision_first", "int32", [decisions]);
  const free = input("decision_free", "float32", [decisions]);

  const flat = gatherRows(policy.logProbs, reshape(routes, [mulDims(decisions, width, depth)]));
  const scores = add(reduceSum(mul(reshape(flat, [decisions, width, depth]), weights), [2]), barred);
  const among = logSoftmax(scores);
  const held = sub(1, free);
  const entropyAmong = neg(reduceSum(mul(exp(among), among), [1]));
  return {
    selected: decisions,
    logProbs: add(mul(held, pick(among, chosen)), mul(free, pick(scores, chosen))),
    entropy: policy.entropy && add(mul(held, entropyAmong), mul(free, gatherRows(policy.entropy, first))),
    hidden: gatherRows(policy.hidden, first),
    values: policy.values && gatherRows(policy.values, first),
  };
}
