import type { FloatTensor, Tensor } from "../../../engine/tensor/index.js";
import type { MinibatchTotals } from "../algorithm-definition.js";
import { sum } from "../shared/arrays.js";
import { repeatEach, sequenceInputs, floatVector } from "../shared/sequence-nodes.js";
import { invalidArgument } from "../../../core/errors.js";
import type { NumberArray } from "../shared/statistics.js";
import { entropyBonusFactor } from "./loss.js";
import type { GrpoConfig, LossType } from "./settings.js";

/** A sequence of GRPO's loss; arrays are [tokens], of the policy's tokens. */
export interface GrpoSequence {
  /** Log-probability when the token was sampled. */
  readonly oldLogProbs: NumberArray;
  /** Advantage of the token, its turn or its sequence. */
  readonly advantages: NumberArray;
  /** Log-probability under the reference policy; required with beta. */
  readonly refLogProbs?: NumberArray;
  /**
   * 1 for tokens that train the policy (highEntropyMask over the update); required with
   * topEntropyQuantile.
   */
  readonly policyMask?: NumberArray;
}

type InputConfig = Pick<
  GrpoConfig,
  "lossType" | "beta" | "topEntropyQuantile" | "entropyCoef" | "maxCompletionLength"
> &
  Partial<Pick<GrpoConfig, "useAdaptiveEntropy">>;

/**
 * Returns the inputs of grpoLoss for the sequences of a micro-batch. `totals` sums over the whole
 * optimizer step, by default of this micro-batch.
 * @throws INVALID_ARGUMENT where reference log-probabilities or masks are missing.
 */
export function grpoInputs(
  sequences: readonly GrpoSequence[],
  config: InputConfig,
  totals: MinibatchTotals = minibatchTotals(sequences),
): Record<string, FloatTensor | Tensor<"int32">> {
  const lengths = sequences.map(({ oldLogProbs }) => oldLogProbs.length);
  const weights = sequenceWeights(config.lossType, lengths, totals, config.maxCompletionLength);
  const masks = config.topEntropyQuantile < 1 ? floatVector(flatten("policyMask", sequences)) : undefined;
  return {
    ...sequenceInputs(lengths),
    oldLogProbs: floatVector(flatten("oldLogProbs", sequences)),
    advantages: floatVector(flatten("advantages", sequences)),
    weights: floatVector(repeatEach(weights, lengths)),
    ...(config.beta === 0 ? {} : { refLogProbs: floatVector(flatten("refLogProbs", sequences)) }),
    ...(masks === undefined ? {} : { policyMask: masks }),
    ...(entropyBonusFactor(config) === 0 ? {} : { entropyWeights: entropyWeights(lengths, masks, totals) }),
  };
}

/** Returns the totals of a step on these sequences. */
export function minibatchTotals(sequences: readonly GrpoSequence[]): MinibatchTotals {
  return {
    sequences: sequences.length,
    tokens: sum(sequences.map(({ oldLogProbs }) => oldLogProbs.length)),
    entropyTokens: sum(
      sequences.map(({ oldLogProbs, policyMask }) => (policyMask === undefined ? oldLogProbs.length : sum(policyMask))),
    ),
  };
}

/**
 * Returns the weight of each sequence's tokens. grpo, sapo: mean over a sequence's tokens, then
 * over sequences. luspo: sum over tokens, mean over sequences. bnpo: mean over the step's tokens.
 * dapo, cispo, vespo: the same with the mean number of tokens per step. dr_grpo: sum divided by a
 * constant.
 */
function sequenceWeights(
  lossType: LossType,
  lengths: readonly number[],
  { sequences, tokens, meanTokens = tokens }: MinibatchTotals,
  maxCompletionLength: number,
): number[] {
  const perSequence = (length: number) => 1 / (sequences * length);
  const overTokens = () => 1 / Math.max(tokens, 1);
  const overMeanTokens = () => 1 / Math.max(meanTokens, 1);
  const weight: Readonly<Record<LossType, (length: number) => number>> = {
    grpo: perSequence,
    sapo: perSequence,
    luspo: () => 1 / sequences,
    bnpo: overTokens,
    dapo: overMeanTokens,
    cispo: overMeanTokens,
    vespo: overMeanTokens,
    dr_grpo: () => 1 / (sequences * maxCompletionLength),
  };
  return lengths.map(weight[lossType]);
}

/** Returns equal weights for all tokens that train the policy. */
function entropyWeights(
  lengths: readonly number[],
  masks: FloatTensor | undefined,
  { tokens, entropyTokens = tokens, entropyFactor = 1 }: MinibatchTotals,
): FloatTensor {
  const weight = entropyFactor / Math.max(entropyTokens, 1);
  const activeMask =
    masks?.data ??
    repeatEach(
      lengths.map(() => 1),
      lengths,
    );
  return floatVector(Array.from(activeMask, (isActive) => isActive * weight));
}

function flatten(name: keyof GrpoSequence, sequences: readonly GrpoSequence[]): number[] {
  return sequences.flatMap((sequence, i) => {
    const values = sequence[name];
    const { length } = sequence.oldLogProbs;
    if (values?.length === length) return Array.from(values);
    throw invalidArgument(
      `Sequence ${i} has ${length} tokens, but ${values === undefined ? "no" : values.length} ${name}; each token needs one.`,
    );
  });
}
