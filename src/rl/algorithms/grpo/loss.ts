import {
  add,
  clip,
  cast,
  exp,
  input,
  lessEqual,
  less,
  maximum,
  minimum,
  mul,
  neg,
  or,
  sigmoid,
  stopGradient,
  sub,
  where,
  type Node,
} from "../../../engine/graph/index.js";
import type { PolicyNodes, LossResult } from "../../../models/graphs/index.js";
import { checkEntropy } from "../shared/entropy-bonus.js";
import { sequenceNodes, type SequenceNodes } from "../shared/sequence-nodes.js";
import { clippedSurrogate, weightedSum } from "../shared/clipped-surrogate.js";
import type { GrpoConfig, LossType } from "./settings.js";

/** Settings read by the loss. */
export type GrpoLossConfig = Pick<
  GrpoConfig,
  | "lossType"
  | "importanceSamplingLevel"
  | "epsilon"
  | "epsilonHigh"
  | "delta"
  | "beta"
  | "useBiasCorrectionKl"
  | "sapoTemperaturePos"
  | "sapoTemperatureNeg"
  | "vespoKPos"
  | "vespoLambdaPos"
  | "vespoKNeg"
  | "vespoLambdaNeg"
  | "offPolicyMaskThreshold"
  | "topEntropyQuantile"
  | "entropyCoef"
> &
  Partial<Pick<GrpoConfig, "useAdaptiveEntropy">>;

/**
 * Returns the factor of the entropy bonus in the loss; an adaptive weight is part of the input
 * "entropyWeights".
 */
export function entropyBonusFactor({
  entropyCoef,
  useAdaptiveEntropy = false,
}: Pick<GrpoLossConfig, "entropyCoef" | "useAdaptiveEntropy">): number {
  return useAdaptiveEntropy ? 1 : entropyCoef;
}

/** Terms of the per-token loss; nodes are [selected]. */
interface LossTerms {
  readonly logProbs: Node;
  readonly advantages: Node;
  /** log pi - log pi_old of each token. */
  readonly logRatio: Node;
  /** pi / pi_old, of the token or of its sequence. */
  readonly ratio: Node;
  readonly sequences: SequenceNodes;
  readonly config: GrpoLossConfig;
}

interface TokenLoss {
  readonly loss: Node;
  /** Per-token statistics for the metrics, by TRL's names. */
  readonly statistics: Readonly<Record<string, Node>>;
}

/**
 * Builds a loss of the GRPO family as in TRL 1.16: sum of weights[t] * (loss[t] + beta * KL[t]) -
 * entropyCoef * mean entropy. The weights (grpoInputs) define how the loss is averaged, so micro-
 * batches add up. Statistics are [selected]: ratio, kl (with beta), entropy, phi (vespo).
 * @throws INVALID_ARGUMENT without entropies where they are weighted.
 */
export function grpoLoss(
  { selected, logProbs, entropy }: Pick<PolicyNodes, "selected" | "logProbs" | "entropy">,
  config: GrpoLossConfig,
): LossResult {
  const { beta, offPolicyMaskThreshold } = config;
  const entropyCoef = entropyBonusFactor(config);
  checkEntropy("GRPO", entropyCoef, entropy);
  const perToken = (name: string) => input(name, "float32", [selected]);
  const [oldLogProbs, advantages, weights] = [perToken("oldLogProbs"), perToken("advantages"), perToken("weights")];
  const sequences = sequenceNodes(selected);

  const logRatio = sub(logProbs, oldLogProbs);
  const ratio = exp(config.importanceSamplingLevel === "token" ? logRatio : sequences.mean(logRatio));
  const terms: LossTerms = { logProbs, advantages, logRatio, ratio, sequences, config };
  const policyLoss = tokenLosses[config.lossType](terms);

  let loss = policyLoss.loss;
  if (offPolicyMaskThreshold !== undefined) loss = mul(loss, offPolicyMask(terms, offPolicyMaskThreshold));
  if (config.topEntropyQuantile < 1) loss = mul(loss, perToken("policyMask"));
  const kl = beta === 0 ? undefined : referenceKl(terms, perToken("refLogProbs"));
  if (kl !== undefined) loss = add(loss, mul(kl, beta));

  const total = weightedSum(loss, weights);
  return {
    loss: entropyCoef === 0 ? total : sub(total, mul(weightedSum(entropy!, perToken("entropyWeights")), entropyCoef)),
    statistics: {
      ...policyLoss.statistics,
      ...(kl === undefined ? {} : { kl }),
      ...(entropy === undefined ? {} : { entropy }),
    },
  };
}

/**
 * PPO's clipped surrogate with asymmetric bounds (Yu et al. 2025) and a maximum ratio (dual clip,
 * Ye et al. 2020).
 */
function clippedLoss({ ratio, advantages, config: { epsilon, epsilonHigh, delta } }: LossTerms): TokenLoss {
  const surrogate = clippedSurrogate(ratio, advantages, { epsilon, epsilonHigh });
  if (delta === undefined) return { loss: surrogate.loss, statistics: { ratio } };
  const boundedRatio = minimum(ratio, delta);
  return { loss: maximum(neg(mul(boundedRatio, advantages)), surrogate.clipped), statistics: { ratio: boundedRatio } };
}

const tokenLosses: Readonly<Record<LossType, (terms: LossTerms) => TokenLoss>> = {
  grpo: clippedLoss,
  bnpo: clippedLoss,
  dr_grpo: clippedLoss,
  dapo: clippedLoss,
  luspo: clippedLoss,
  /**
   * Policy gradient with clipped importance weights (MiniMax 2025): no token loses its gradient.
   */
  cispo: ({ ratio, advantages, logProbs, config }) => ({
    loss: neg(mul(mul(stopGradient(minimum(ratio, config.epsilonHigh)), advantages), logProbs)),
    statistics: { ratio },
  }),
  /** Sigmoid gate instead of clipping (Gao et al. 2025), steeper for negative advantages. */
  sapo: ({ ratio, advantages, config: { sapoTemperaturePos, sapoTemperatureNeg } }) => {
    const positive = less(0, advantages);
    const temperature = where(positive, sapoTemperaturePos, sapoTemperatureNeg);
    const gate = mul(
      sigmoid(mul(temperature, sub(ratio, 1))),
      where(positive, 4 / sapoTemperaturePos, 4 / sapoTemperatureNeg),
    );
    return { loss: neg(mul(gate, advantages)), statistics: { ratio } };
  },
  vespo: (terms) => {
    const phi = vespoWeights(terms);
    return { loss: neg(mul(mul(phi, terms.advantages), terms.logProbs)), statistics: { ratio: terms.ratio, phi } };
  },
};

/** Bounds of vespo's log-ratios of tokens and sequences, in nats. */
const MAX_LOG_RATIO = 20;
const MIN_LOG_WEIGHT = Math.log(1e-8);
const MAX_FLOAT32 = 3.4028234663852886e38;

/**
 * Vespo's sequence weight e^lambda w^k e^(-lambda w) for the sequence's ratio w; 1 at w = 1. No
 * gradient.
 */
function vespoWeights({ logRatio, advantages, sequences, config }: LossTerms): Node {
  const summed = sequences.sum(clip(stopGradient(logRatio), -MAX_LOG_RATIO, MAX_LOG_RATIO));
  const logWeight = clip(summed, MIN_LOG_WEIGHT, MAX_LOG_RATIO);
  const negative = less(advantages, 0);
  const power = where(negative, config.vespoKNeg, config.vespoKPos);
  const decay = where(negative, Math.max(config.vespoLambdaNeg, 1e-4), Math.max(config.vespoLambdaPos, 1e-4));
  const logPhi = sub(add(decay, mul(power, logWeight)), mul(decay, exp(logWeight)));
  const phi = exp(logPhi);
  return where(lessEqual(phi, MAX_FLOAT32), phi, 0);
}

/**
 * 1 for tokens of sequences whose mean KL is within the threshold, or whose advantage is not
 * negative (DeepSeek-V3.2).
 */
function offPolicyMask({ logRatio, advantages, sequences }: LossTerms, threshold: number): Node {
  const meanKl = sequences.mean(neg(stopGradient(logRatio)));
  return cast(or(lessEqual(0, advantages), lessEqual(meanKl, threshold)), "float32");
}

/**
 * Schulman's k3 estimate of the KL to the reference, weighted by the ratio where the bias is
 * corrected.
 */
function referenceKl({ logProbs, ratio, config: { useBiasCorrectionKl } }: LossTerms, refLogProbs: Node): Node {
  const refLogRatio = sub(refLogProbs, logProbs);
  const k3 = sub(sub(exp(refLogRatio), refLogRatio), 1);
  return useBiasCorrectionKl ? mul(k3, ratio) : k3;
}
