import { ppoLoss, type PpoTokens } from "../../../src/rl/algorithms/ppo/loss.js";
import { lossNodes, tokenInputs } from "../../../src/rl/algorithms/shared/loss-nodes.js";
import { exceedsRatioThreshold, type PpoStatistics } from "../../../src/rl/algorithms/ppo/metrics.js";
import { exp, input, logSoftmax, mul, neg, pick, reduceSum, dim, type Node } from "../../../src/engine/graph/index.js";
import type { PolicyNodes } from "../../../src/models/graphs/policy-nodes.js";
import type { Runtime } from "../../../src/engine/runtime/runtime.js";
import { float32, int32 } from "../../../src/engine/tensor/tensor.js";
import { evaluateNodes, evaluateLoss } from "./evaluate-nodes.js";
import type { Logits, PpoCase } from "./ppo-fixture.js";
import type { PaddedRows, MaskSelection } from "./rows.js";

/**
 * What logits say of each token: log-probabilities of the whole vocabulary, of the token, and
 * entropy.
 */
export type Distributions = Readonly<Record<"all" | "logProbs" | "entropy", Float32Array>>;

export interface PpoLossResult {
  readonly sums: PpoStatistics;
  /** At every position, 0 where the mask lets nothing through. */
  readonly gradients: Readonly<Record<"logProbs" | "logits" | "values", number[]>>;
}

/** Policy nodes of tokens whose logits [selected, vocabulary] are given. */
function buildPolicyNodes(vocabulary: number): Pick<PolicyNodes, "selected" | "logProbs"> & {
  readonly logits: Node;
  readonly entropy: Node;
  readonly all: Node;
} {
  const selected = dim("selected");
  const logits = input("logits", "float32", [selected, vocabulary]);
  const all = logSoftmax(logits);
  return {
    selected,
    logits,
    all,
    logProbs: pick(all, input("labels", "int32", [selected])),
    entropy: neg(reduceSum(mul(exp(all), all), [1])),
  };
}

function logitFeeds(logits: PaddedRows, labels: readonly number[]) {
  return { logits: float32(logits.flat(), [logits.length, logits[0].length]), labels: int32(labels) };
}

/** Log-probabilities and entropies at every position, padding included. */
export async function computeDistributions(
  logits: Logits,
  labels: PaddedRows,
  runtime: Runtime,
): Promise<Distributions> {
  const { all, logProbs, entropy } = buildPolicyNodes(logits[0][0].length);
  return evaluateNodes(runtime, { all, logProbs, entropy }, logitFeeds(logits.flat(), labels.flat()));
}

/**
 * Loss, statistics and gradients of the tokens that the mask lets through; a skipped minibatch has
 * none.
 */
export async function runPpoLoss(
  { config, inputs }: PpoCase,
  tokens: PpoTokens,
  selection: MaskSelection,
  runtime: Runtime,
): Promise<PpoLossResult> {
  const vocabulary = inputs.logits[0][0].length;
  const policy = buildPolicyNodes(vocabulary);
  const values = input("values", "float32", [policy.selected]);
  const objective = ppoLoss(lossNodes({ ...policy, values }), {
    cliprange: config.cliprange,
    cliprangeValue: config.cliprange_value,
    vfCoef: config.vf_coef,
    entropyCoef: 0,
  });
  const { loss, statistics, gradients } = await evaluateLoss(
    runtime,
    objective,
    { logits: policy.logits, logProbs: policy.logProbs, values },
    {
      ...logitFeeds(selection.select(inputs.logits), selection.select(inputs.labels)),
      values: float32(selection.select(inputs.vpreds)),
      ...tokenInputs([tokens], { tokens: tokens.oldLogProbs.length }),
    },
  );
  const sums: PpoStatistics = {
    loss,
    ...Object.fromEntries(Object.entries(statistics).map(([name, [sum]]) => [name, sum])),
  };
  // TRL reports losses of 0 for a skipped minibatch.
  const scale = exceedsRatioThreshold(sums, { ratioThreshold: config.ratio_threshold }) ? 0 : 1;
  const scaled = (all: number[]) => all.map((slope) => scale * slope);
  return {
    sums: {
      ...sums,
      loss: scale * loss,
      policyLoss: scale * sums.policyLoss!,
      valueLoss: scale * sums.valueLoss!,
    },
    gradients: {
      logits: scaled(selection.scatter(gradients.logits, vocabulary)),
      logProbs: scaled(selection.scatter(gradients.logProbs)),
      values: scaled(selection.scatter(gradients.values)),
    },
  };
}
