import {
  add,
  cast,
  dim,
  div,
  exp,
  input,
  lessEqual,
  maximum,
  minimum,
  mul,
  neg,
  reduceSum,
  scatterAddRows,
  sigmoid,
  square,
  sub,
  type Node,
} from "../../engine/graph/index.js";
import type { PolicyNodes, LossResult } from "../../models/graphs/index.js";
import { withUnusedValues } from "../algorithms/sft/loss.js";
import type { DpoConfig } from "./dpo-settings.js";
import { logSigmoid } from "../algorithms/shared/clipped-surrogate.js";

/** Log-probabilities of pairs under the policy: [pairs]. */
export interface PairNodes {
  readonly chosen: Node;
  readonly rejected: Node;
  /** That of the chosen completion without `ldAlpha`. */
  readonly chosenSum: Node;
}

/** Number of pairs of a micro-batch. */
export const pairs = dim("pairs");

const perPair = (name: string) => input(name, "float32", [pairs]);

/** Largest exponent of the alpha divergence, as in TRL. */
const MAX_EXPONENT = 80;

/**
 * Returns f'(t) of the divergence's function f at the ratio t of the policies, given log t: the
 * score of a completion.
 */
function divergenceScore(logRatio: Node, { fDivergenceType, fAlphaDivergenceCoef }: DpoConfig): Node {
  if (fDivergenceType === "forward_kl") return sub(1, exp(neg(logRatio)));
  if (fDivergenceType === "js_divergence") return add(logSigmoid(logRatio), Math.log(2));
  const power = fAlphaDivergenceCoef - 1;
  // The limit of the alpha divergence for a coefficient of 1 is the reverse KL divergence.
  if (fDivergenceType === "reverse_kl" || Math.abs(power) < 1e-6) return logRatio;
  return mul(sub(exp(minimum(mul(logRatio, power), MAX_EXPONENT)), 1), 1 / power);
}

/**
 * Returns the loss of each pair [pairs], as TRL's DPOTrainer computes it. Inputs are "refChosen"
 * and "refRejected", log-probabilities under the reference policy, "chosenLengths" and
 * "rejectedLengths", and "sftScale", pairs per chosen token of the update.
 */
export function pairLosses({ chosen, rejected, chosenSum }: PairNodes, config: DpoConfig): Node {
  const { beta, labelSmoothing, lossType, discopopTau } = config;
  const chosenRatio = sub(chosen, perPair("refChosen"));
  const rejectedRatio = sub(rejected, perPair("refRejected"));
  const [chosenScore, rejectedScore] = [chosenRatio, rejectedRatio].map((ratio) => divergenceScore(ratio, config));
  const delta = sub(chosenScore, rejectedScore);
  const logits = mul(delta, beta);
  const [chosenReward, rejectedReward] = [mul(chosenRatio, beta), mul(rejectedRatio, beta)];
  /** Difference of the scores per token. */
  const meanDelta = () =>
    sub(div(chosenScore, perPair("chosenLengths")), div(rejectedScore, perPair("rejectedLengths")));
  switch (lossType) {
    case "sigmoid":
      return neg(logSigmoid(logits));
    case "hinge":
      return maximum(0, sub(1, logits));
    case "ipo":
      return square(sub(meanDelta(), 1 / (2 * beta)));
    case "exo_pair":
      return add(
        mul(sigmoid(logits), sub(logSigmoid(logits), Math.log1p(-labelSmoothing))),
        mul(sigmoid(neg(logits)), sub(logSigmoid(neg(logits)), Math.log(labelSmoothing))),
      );
    case "nca_pair":
      return neg(
        add(logSigmoid(chosenReward), mul(add(logSigmoid(neg(chosenReward)), logSigmoid(neg(rejectedReward))), 0.5)),
      );
    case "robust":
      return mul(
        sub(mul(logSigmoid(neg(logits)), labelSmoothing), mul(logSigmoid(logits), 1 - labelSmoothing)),
        1 / (1 - 2 * labelSmoothing),
      );
    case "bco_pair":
      return neg(add(logSigmoid(chosenReward), logSigmoid(neg(rejectedReward))));
    case "sppo_hard":
      return add(square(sub(chosenRatio, 0.5 / beta)), square(add(rejectedRatio, 0.5 / beta)));
    case "apo_zero":
      return add(sigmoid(neg(chosenReward)), sigmoid(rejectedReward));
    case "apo_down":
      return add(sigmoid(chosenReward), sigmoid(sub(rejectedReward, chosenReward)));
    case "discopop": {
      const modulation = sigmoid(mul(logits, 1 / discopopTau));
      return add(neg(mul(logSigmoid(logits), sub(1, modulation))), mul(exp(neg(logits)), modulation));
    }
    case "sft":
      return neg(mul(chosenSum, input("sftScale", "float32", [])));
    case "sigmoid_norm":
      return neg(logSigmoid(mul(meanDelta(), beta)));
  }
}

/**
 * Returns the weighted sum of the pairs' losses, so that the losses of micro-batches add up. Per
 * selected token, "pairIndex" is its pair, "chosenMask" 1 for those of chosen completions, and
 * "tokenWeights" the weight of `ldAlpha`; "pairWeights" are 1 / pairs of the update.
 */
export function dpoLoss(policy: PolicyNodes, config: DpoConfig): LossResult {
  const { logProbs, maxLogProbs, selected } = policy;
  const pairIndex = input("pairIndex", "int32", [selected]);
  const chosenMask = input("chosenMask", "float32", [selected]);
  const weighted =
    config.ldAlpha === undefined ? logProbs : mul(logProbs, input("tokenWeights", "float32", [selected]));
  const sumPerPair = (x: Node) => scatterAddRows(x, pairIndex, pairs);
  const chosen = sumPerPair(mul(weighted, chosenMask));
  const rejected = sumPerPair(mul(weighted, sub(1, chosenMask)));
  const chosenSum = weighted === logProbs ? chosen : sumPerPair(mul(logProbs, chosenMask));
  const losses = pairLosses({ chosen, rejected, chosenSum }, config);
  return {
    loss: withUnusedValues(reduceSum(mul(losses, perPair("pairWeights"))), policy),
    statistics: {
      chosen,
      rejected,
      correct: reduceSum(mul(cast(lessEqual(maxLogProbs, logProbs), "float32"), chosenMask)),
    },
  };
}
