import { exp, input, scatterAddRows, sub, symbol } from "../../graph/index.js";
import type { PolicyNodes } from "../../models/policy.js";
import type { Objective } from "../../models/training-graph.js";
import { int32, type FloatTensor, type Tensor } from "../../tensor/tensor.js";
import { repeatEach, vector } from "../shared/sequences.js";
import { mean, type Numbers } from "../shared/statistics.js";
import { clippedSurrogate, ratioBounds, weightedSum } from "../shared/surrogate.js";
import type { RlooConfig } from "./config.js";

/** A reply or an episode as RLOO's loss sees it. */
export interface RlooSequence {
  /** Trained tokens. */
  readonly length: number;
  /** Log-probability of all of them together when they were sampled. */
  readonly oldLogProb: number;
  readonly advantage: number;
}

type LossConfig = Pick<RlooConfig, "epsilon" | "epsilonHigh">;

/**
 * RLOO's loss as in TRL 1.16: PPO's clipped surrogate with the ratio of whole sequences, sum of weights[s] * loss[s] with weights
 * of 1 / (sequences of the optimiser step). All tokens of a sequence must be in one run. The statistic `ratio` is [sequences].
 */
export function rlooLoss(
  { selected, logProbs, entropy }: Pick<PolicyNodes, "selected" | "logProbs" | "entropy">,
  range: LossConfig,
): Objective {
  const sequences = symbol("sequences");
  const perSequence = (name: string) => input(name, "float32", [sequences]);
  const summed = scatterAddRows(logProbs, input("rows", "int32", [selected]), sequences);
  const ratio = exp(sub(summed, perSequence("oldLogProbs")));
  const surrogate = clippedSurrogate(ratio, perSequence("advantages"), range);
  return {
    loss: weightedSum(surrogate.loss, perSequence("weights")),
    statistics: { ratio, ...(entropy === undefined ? {} : { entropy }) },
  };
}

/** The inputs of rlooLoss for the sequences of a run, in the order of its tokens; `total` is those of the optimiser step. */
export function rlooInputs(
  sequences: readonly RlooSequence[],
  total: number = sequences.length,
): Record<string, FloatTensor | Tensor<"int32">> {
  return {
    rows: int32(
      repeatEach(
        sequences.keys(),
        sequences.map(({ length }) => length),
      ),
    ),
    oldLogProbs: vector(sequences.map(({ oldLogProb }) => oldLogProb)),
    advantages: vector(sequences.map(({ advantage }) => advantage)),
    weights: vector(sequences.map(() => 1 / total)),
  };
}

/** An optimiser step's metrics under TRL 1.16's names: `ratio` is [sequences], `entropy` [tokens]. */
export function rlooMetrics(
  { ratio, entropy }: { readonly ratio: Numbers; readonly entropy?: Numbers },
  sequences: readonly Pick<RlooSequence, "advantage">[],
  range: LossConfig,
): Record<string, number> {
  const bounds = ratioBounds(range);
  const low = sequences.map(({ advantage }, i) => (ratio[i] < bounds.low && advantage < 0 ? 1 : 0));
  const high = sequences.map(({ advantage }, i) => (ratio[i] > bounds.high && advantage > 0 ? 1 : 0));
  return {
    ...(entropy === undefined ? {} : { entropy: mean(entropy) }),
    "clip_ratio/low_mean": mean(low),
    "clip_ratio/low_min": Math.min(...low),
    "clip_ratio/high_mean": mean(high),
    "clip_ratio/high_max": Math.max(...high),
    "clip_ratio/region_mean": mean(low) + mean(high),
  };
}
