import { exp, input, mul, scatterAddRows, sub, dim } from "../../../engine/graph/index.js";
import type { PolicyNodes, LossResult } from "../../../models/graphs/index.js";
import { int32, type FloatTensor, type Tensor } from "../../../engine/tensor/index.js";
import type { MinibatchTotals } from "../algorithm-definition.js";
import { sum } from "../shared/arrays.js";
import { repeatEach, floatVector } from "../shared/sequence-nodes.js";
import { checkEntropy } from "../shared/entropy-bonus.js";
import { approximateKl } from "../shared/kl.js";
import { mean, type NumberArray } from "../shared/statistics.js";
import { clippedSurrogate, ratioBounds, weightedSum } from "../shared/clipped-surrogate.js";
import type { RlooConfig } from "./settings.js";

export interface RlooSequence {
  /** Trained tokens. */
  readonly length: number;
  /** Log-probability of the sequence when it was sampled. */
  readonly oldLogProb: number;
  readonly advantage: number;
}

type LossConfig = Pick<RlooConfig, "epsilon" | "epsilonHigh"> & Partial<Pick<RlooConfig, "entropyCoef">>;

/**
 * Builds RLOO's loss as in TRL 1.16: PPO's clipped surrogate with ratios of whole sequences,
 * weighted by 1 / (sequences of the optimizer step), minus entropyCoef times the mean entropy. The
 * tokens of a sequence must be in the same micro-batch. The statistic `ratio` is [sequences].
 * @throws INVALID_ARGUMENT without entropies where they are weighted.
 */
export function rlooLoss(
  { selected, logProbs, entropy }: Pick<PolicyNodes, "selected" | "logProbs" | "entropy">,
  { entropyCoef = 0, ...clipRange }: LossConfig,
): LossResult {
  const sequences = dim("sequences");
  const perSequence = (name: string) => input(name, "float32", [sequences]);
  const summed = scatterAddRows(logProbs, input("rows", "int32", [selected]), sequences);
  const ratio = exp(sub(summed, perSequence("oldLogProbs")));
  const surrogate = clippedSurrogate(ratio, perSequence("advantages"), clipRange);
  checkEntropy("RLOO", entropyCoef, entropy);
  const policyLoss = weightedSum(surrogate.loss, perSequence("weights"));
  const bonus = () => mul(weightedSum(entropy!, input("entropyWeights", "float32", [selected])), entropyCoef);
  return {
    loss: entropyCoef === 0 ? policyLoss : sub(policyLoss, bonus()),
    statistics: { ratio, ...(entropy === undefined ? {} : { entropy }) },
  };
}

/**
 * Returns the inputs of rlooLoss for the sequences of a micro-batch; `totals` sums over the
 * optimizer step.
 */
export function rlooInputs(
  sequences: readonly RlooSequence[],
  totals: MinibatchTotals = { sequences: sequences.length, tokens: sum(sequences.map(({ length }) => length)) },
  { entropyCoef = 0 }: Partial<Pick<RlooConfig, "entropyCoef">> = {},
): Record<string, FloatTensor | Tensor<"int32">> {
  const lengths = sequences.map(({ length }) => length);
  const entropyWeight = (totals.entropyFactor ?? 1) / Math.max(totals.tokens, 1);
  return {
    rows: int32(repeatEach(sequences.keys(), lengths)),
    oldLogProbs: floatVector(sequences.map(({ oldLogProb }) => oldLogProb)),
    advantages: floatVector(sequences.map(({ advantage }) => advantage)),
    weights: floatVector(sequences.map(() => 1 / totals.sequences)),
    ...(entropyCoef === 0 ? {} : { entropyWeights: floatVector(new Float32Array(sum(lengths)).fill(entropyWeight)) }),
  };
}

/**
 * Computes metrics under TRL 1.16's names, and PPO's approxkl: `ratio` is [sequences], `entropy`
 * [tokens].
 */
export function rlooMetrics(
  { ratio, entropy }: { readonly ratio: NumberArray; readonly entropy?: NumberArray },
  sequences: readonly Pick<RlooSequence, "advantage">[],
  clipRange: LossConfig,
): Record<string, number> {
  const bounds = ratioBounds(clipRange);
  const low = sequences.map(({ advantage }, i) => (ratio[i] < bounds.low && advantage < 0 ? 1 : 0));
  const high = sequences.map(({ advantage }, i) => (ratio[i] > bounds.high && advantage > 0 ? 1 : 0));
  return {
    ...(entropy === undefined ? {} : { entropy: mean(entropy) }),
    "policy/approxkl_avg": approximateKl(ratio),
    "clip_ratio/low_mean": mean(low),
    "clip_ratio/low_min": Math.min(...low),
    "clip_ratio/high_mean": mean(high),
    "clip_ratio/high_max": Math.max(...high),
    "clip_ratio/region_mean": mean(low) + mean(high),
  };
}
