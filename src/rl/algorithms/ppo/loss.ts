import { add, cast, clip, less, maximum, mul, square, sub, type Node } from "../../../engine/graph/index.js";
import type { LossResult } from "../../../models/graphs/index.js";
import { checkEntropy } from "../shared/entropy-bonus.js";
import type { LossNodes } from "../shared/loss-nodes.js";
import { invalidArgument } from "../../../core/errors.js";
import type { NumberArray } from "../shared/statistics.js";
import { clippedSurrogate, probabilityRatio, weightedSum } from "../shared/clipped-surrogate.js";
import type { PpoConfig } from "./settings.js";

/** Per-token inputs of PPO's loss, [selected]. */
export interface PpoTokens {
  /** Log-probability when the token was sampled. */
  readonly oldLogProbs: NumberArray;
  /** Value of the state before the token when it was sampled. */
  readonly oldValues: NumberArray;
  readonly advantages: NumberArray;
  readonly returns: NumberArray;
}

type LossConfig = Pick<PpoConfig, "cliprange" | "cliprangeValue" | "vfCoef" | "entropyCoef">;

/**
 * Builds PPO's loss (Schulman et al. 2017, eq. 9), clipped surrogate + vfCoef * clipped value loss
 * - entropyCoef * entropy, as TRL 0.7's PPOTrainer.loss. The value loss is 0.5 * max((v - R)^2,
 * (clip(v) - R)^2).
 *
 * @throws INVALID_ARGUMENT without a value head, or without entropies where they are weighted.
 */
export function ppoLoss(
  { logProbs, values, entropy, perToken, weights, entropyFactor }: LossNodes,
  { cliprange, cliprangeValue, vfCoef, entropyCoef }: LossConfig,
): LossResult {
  if (values === undefined)
    throw invalidArgument(
      "PPO needs a model with a value head. Open it with AutoModelForCausalLMWithValueHead, or give getPeftModel `valueHead: {}`.",
    );
  checkEntropy("PPO", entropyCoef, entropy);
  const [oldLogProbs, oldValues] = [perToken("oldLogProbs"), perToken("oldValues")];
  const [advantages, returns] = [perToken("advantages"), perToken("returns")];
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
  const loss = entropyCoef === 0 ? withoutBonus : sub(withoutBonus, mul(meanEntropy!, mul(entropyFactor, entropyCoef)));

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
      tokenRatio: ratio,
      valuePrediction: mean(values),
      valueError: mean(error),
      valueClipFraction: fraction(less(error, clippedError)),
    },
  };
}
