import { add, cast, clip, input, less, maximum, mul, square, sub, type Node } from "../../../engine/graph/index.js";
import type { PolicyNodes } from "../../../models/graphs/policy-nodes.js";
import type { LossResult } from "../../../models/graphs/training-graph.js";
import type { FloatTensor } from "../../../engine/tensor/tensor.js";
import { checkEntropy, entropyFactorInput, entropyWeight } from "../shared/entropy-bonus.js";
import { floatVector } from "../shared/sequence-nodes.js";
import { invalidArgument } from "../../../core/settings.js";
import type { NumberArray } from "../shared/statistics.js";
import { clippedSurrogate, probabilityRatio, weightedSum } from "../shared/clipped-surrogate.js";
import type { PpoConfig } from "./settings.js";

/** What PPO's loss needs for each trained token besides the policy's nodes; each is [selected]. */
export interface PpoTokens {
  /** Log-probability when the token was sampled. */
  readonly oldLogProbs: NumberArray;
  /** Value of the state before the token, from when it was sampled. */
  readonly oldValues: NumberArray;
  readonly advantages: NumberArray;
  readonly returns: NumberArray;
}

export type PpoInputs = Readonly<Record<keyof PpoTokens | "weights", FloatTensor>> & {
  readonly entropyFactor?: FloatTensor;
};

type LossConfig = Pick<PpoConfig, "cliprange" | "cliprangeValue" | "vfCoef" | "entropyCoef">;

/**
 * PPO's loss (Schulman et al. 2017, eq. 9): clipped surrogate + vfCoef * clipped value loss - entropyCoef * entropy, as TRL
 * 0.7's PPOTrainer.loss, with sums of weights[t] * x[t] for means: weights of 1 / (tokens of the minibatch) make several runs add
 * up to the whole. The value loss is 0.5 * max((v - R)^2, (clip(v) - R)^2). Throws INVALID_ARGUMENT without a value head, or
 * without entropies where they are weighted.
 */
export function ppoLoss(
  { selected, logProbs, values, entropy }: Pick<PolicyNodes, "selected" | "logProbs" | "values" | "entropy">,
  { cliprange, cliprangeValue, vfCoef, entropyCoef }: LossConfig,
): LossResult {
  if (values === undefined)
    throw invalidArgument("PPO needs a model with a value head: add one with { valueHead: true }.");
  checkEntropy("PPO", entropyCoef, entropy);
  const perToken = (name: keyof PpoTokens | "weights") => input(name, "float32", [selected]);
  const [oldLogProbs, oldValues] = [perToken("oldLogProbs"), perToken("oldValues")];
  const [advantages, returns, weights] = [perToken("advantages"), perToken("returns"), perToken("weights")];
  const mean = (x: Node) => weightedSum(x, weights);
  const fraction = (condition: Node) => mean(cast(condition, "float32"));

  const ratio = probabilityRatio(logProbs, oldLogProbs);
  const surrogate = clippedSurrogate(ratio, advantages, { epsilon: cliprange, epsilonHigh: cliprange });
  const policyLoss = mean(surrogate.loss);

  const clippedValues = clip(values, sub(oldValues, cliprangeValue), add(oldValues, cliprangeValue));
  const [error, clippedError] = [square(sub(values, returns)), square(sub(clippedValues, returns))];
  const valueLoss = mul(mean(maximum(error, clippedError)), 0.5);

  const withoutBonus = add(policyLoss, mul(valueLoss, vfCoef));
  const meanEntropy = entropy === undefined ? undefined : mean(entropy);
  const loss = entropyCoef === 0 ? withoutBonus : sub(withoutBonus, mul(meanEntropy!, entropyWeight(entropyCoef)));

  const logRatio = sub(logProbs, oldLogProbs);
  return {
    loss,
    statistics: {
      policyLoss,
      valueLoss,
      ...(meanEntropy === undefined ? {} : { entropy: meanEntropy }),
      approxKl: mul(mean(square(logRatio)), 0.5),
      policyKl: mean(sub(oldLogProbs, logProbs)),
      clipFraction: fraction(less(surrogate.unclipped, surrogate.clipped)),
      ratio: mean(ratio),
      valuePrediction: mean(values),
      valueError: mean(error),
      valueClipFraction: fraction(less(error, clippedError)),
    },
  };
}

/**
 * The inputs of ppoLoss for a run that has `tokens` of the `total` tokens of its minibatch. `entropyFactor` is wanted where there is
 * an entropy bonus.
 */
export function ppoInputs(
  tokens: PpoTokens,
  { total = tokens.oldLogProbs.length, entropyFactor }: { total?: number; entropyFactor?: number } = {},
): PpoInputs {
  return {
    oldLogProbs: floatVector(tokens.oldLogProbs),
    oldValues: floatVector(tokens.oldValues),
    advantages: floatVector(tokens.advantages),
    returns: floatVector(tokens.returns),
    weights: floatVector(new Float32Array(tokens.oldLogProbs.length).fill(1 / total)),
    ...entropyFactorInput(entropyFactor),
  };
}
