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
} from "../../graph/index.js";
import type { PolicyNodes } from "../../models/policy.js";
import type { Objective } from "../../models/training-graph.js";
import { checkEntropy } from "../shared/entropy-bonus.js";
import { sequenceNodes, type SequenceNodes } from "../shared/sequences.js";
import { clippedSurrogate, weightedSum } from "../shared/surrogate.js";
import type { GrpoConfig, LossType } from "./config.js";

/** Settings that the loss reads. */
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
>;

/** What the loss of each token is made of; nodes are [selected]. */
interface Terms {
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
  /** By TRL's names, for each token: what the metrics are made of. */
  readonly statistics: Readonly<Record<string, Node>>;
}

/**
 * The losses of the GRPO family as TRL 1.16 defines them, for groups of replies or whole episodes:
 * sum of weights[t] * (loss[t] + beta * KL[t]) - entropyCoef * mean entropy. How a loss is averaged is all in the weights
 * (grpoInputs), so several runs add up to the whole. The statistics are [selected]: ratio, kl (with beta), entropy, phi (vespo).
 * Throws INVALID_ARGUMENT without entropies where they are weighted.
 */
export function grpoLoss(
  { selected, logProbs, entropy }: Pick<PolicyNodes, "selected" | "logProbs" | "entropy">,
  config: GrpoLossConfig,
): Objective {
  const { beta, entropyCoef, offPolicyMaskThreshold } = config;
  checkEntropy("GRPO", entropyCoef, entropy);
  const perToken = (name: string) => input(name, "float32", [selected]);
  const [oldLogProbs, advantages, weights] = [perToken("oldLogProbs"), perToken("advantages"), perToken("weights")];
  const sequences = sequenceNodes(selected);

  const logRatio = sub(logProbs, oldLogProbs);
  const ratio = exp(config.importanceSamplingLevel === "token" ? logRatio : sequences.mean(logRatio));
  const terms: Terms = { logProbs, advantages, logRatio, ratio, sequences, config };
  const policy = tokenLosses[config.lossType](terms);

  let loss = policy.loss;
  if (offPolicyMaskThreshold !== undefined) loss = mul(loss, onPolicy(terms, offPolicyMaskThreshold));
  if (config.topEntropyQuantile < 1) loss = mul(loss, perToken("policyMask"));
  const kl = beta === 0 ? undefined : divergence(terms, perToken("refLogProbs"));
  if (kl !== undefined) loss = add(loss, mul(kl, beta));

  const total = weightedSum(loss, weights);
  return {
    loss: entropyCoef === 0 ? total : sub(total, mul(weightedSum(entropy!, perToken("entropyWeights")), entropyCoef)),
    statistics: {
      ...policy.statistics,
      ...(kl === undefined ? {} : { kl }),
      ...(entropy === undefined ? {} : { entropy }),
    },
  };
}

/** PPO's clipped surrogate with asymmetric bounds (Yu et al. 2025) and a largest ratio (Ye et al. 2020's dual clip). */
function clipped({ ratio, advantages, config: { epsilon, epsilonHigh, delta } }: Terms): TokenLoss {
  const sides = clippedSurrogate(ratio, advantages, { epsilon, epsilonHigh });
  if (delta === undefined) return { loss: sides.loss, statistics: { ratio } };
  const bounded = minimum(ratio, delta);
  return { loss: maximum(neg(mul(bounded, advantages)), sides.clipped), statistics: { ratio: bounded } };
}

const tokenLosses: Readonly<Record<LossType, (terms: Terms) => TokenLoss>> = {
  grpo: clipped,
  bnpo: clipped,
  dr_grpo: clipped,
  dapo: clipped,
  luspo: clipped,
  /** Clipped importance weights on the policy gradient itself (MiniMax 2025): no token loses its gradient. */
  cispo: ({ ratio, advantages, logProbs, config }) => ({
    loss: neg(mul(mul(stopGradient(minimum(ratio, config.epsilonHigh)), advantages), logProbs)),
    statistics: { ratio },
  }),
  /** A sigmoid gate in place of clipping (Gao et al. 2025), steeper for negative advantages. */
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
    const phi = gammaWeights(terms);
    return { loss: neg(mul(mul(phi, terms.advantages), terms.logProbs)), statistics: { ratio: terms.ratio, phi } };
  },
};

/** Bounds of vespo's log-ratios, of a token and of a sequence, in nats. */
const LOG_BOUND = 20;
const LOWEST_LOG_WEIGHT = Math.log(1e-8);
const LARGEST_FLOAT32 = 3.4028234663852886e38;

/** Vespo's weight of a sequence, e^lambda w^k e^(-lambda w) for the ratio w of its whole probability; 1 at w = 1. No gradient. */
function gammaWeights({ logRatio, advantages, sequences, config }: Terms): Node {
  const summed = sequences.sum(clip(stopGradient(logRatio), -LOG_BOUND, LOG_BOUND));
  const logWeight = clip(summed, LOWEST_LOG_WEIGHT, LOG_BOUND);
  const negative = less(advantages, 0);
  const power = where(negative, config.vespoKNeg, config.vespoKPos);
  const decay = where(negative, Math.max(config.vespoLambdaNeg, 1e-4), Math.max(config.vespoLambdaPos, 1e-4));
  const logPhi = sub(add(decay, mul(power, logWeight)), mul(decay, exp(logWeight)));
  const phi = exp(logPhi);
  return where(lessEqual(phi, LARGEST_FLOAT32), phi, 0);
}

/** 1 for tokens of sequences that the policy has not moved away from, or whose advantage is not negative (DeepSeek-V3.2). */
function onPolicy({ logRatio, advantages, sequences }: Terms, threshold: number): Node {
  const moved = sequences.mean(neg(stopGradient(logRatio)));
  return cast(or(lessEqual(0, advantages), lessEqual(moved, threshold)), "float32");
}

/** Schulman's k3 estimate of the divergence from the reference, weighted by the ratio where the bias is to be corrected. */
function divergence({ logProbs, ratio, config: { useBiasCorrectionKl } }: Terms, refLogProbs: Node): Node {
  const gap = sub(refLogProbs, logProbs);
  const k3 = sub(sub(exp(gap), gap), 1);
  return useBiasCorrectionKl ? mul(k3, ratio) : k3;
}
