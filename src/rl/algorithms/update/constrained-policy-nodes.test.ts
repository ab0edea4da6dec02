import { afterAll, describe, expect, it } from "vitest";
import { add, input, mul, reduceSum, dim, type Node } from "../../../engine/graph/index.js";
import type { PolicyNodes } from "../../../models/graphs/policy-nodes.js";
import { evaluateLoss } from "../../../../test/parity/rl/evaluate-nodes.js";
import { Runtime } from "../../../engine/runtime/runtime.js";
import { float32, tensor } from "../../../engine/tensor/tensor.js";
import { constrainedPolicyNodes } from "./constrained-policy-nodes.js";
import { constraintFeeds, type Alternative, type TurnBatch } from "./turn-batch.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

const selected = dim("selected");
const policy: PolicyNodes & { entropy: Node; values: Node } = {
  selected,
  logProbs: input("logProbs", "float32", [selected]),
  maxLogProbs: input("maxLogProbs", "float32", [selected]),
  entropy: input("entropy", "float32", [selected]),
  values: input("values", "float32", [selected]),
  hidden: input("hidden", "float32", [selected, 2]),
};

/**
 * Three tokens (the second is chosen), an unconstrained token, and two actions of two tokens and
 * one (the first is chosen).
 */
const alternatives: Alternative[][] = [
  [0, 1, 2].map((token) => ({ tokens: [token], weight: 1 })),
  [{ tokens: [3], weight: 1 }],
  [
    { tokens: [4, 5], weight: 0.5 },
    { tokens: [6], weight: 1 },
  ],
];
const chosen = [1, 0, 0];
const isUnconstrained = [false, true, false];
const logProbs = [-1, -2, -0.5, -1.5, -3, -1, -2.5];
const maxLogProbs = [0, 0, 0, -0.3, 0, 0, 0];
const entropy = [9, 9, 9, 0.7, 9, 9, 9];
const values = [10, 11, 12, 13, 14, 15, 16];

/** Reference values in plain arithmetic. */
const expected = alternatives.map((all, i) => {
  const scores = all.map(({ tokens, weight }) => weight * tokens.reduce((sum, token) => sum + logProbs[token], 0));
  const mass = scores.reduce((sum, score) => sum + Math.exp(score), 0);
  const shares = scores.map((score) => Math.exp(score) / mass);
  return {
    maxLogProb: isUnconstrained[i] ? maxLogProbs[all[0].tokens[0]] : Math.log(Math.max(...shares)),
    logProb: isUnconstrained[i] ? scores[0] : Math.log(shares[chosen[i]]),
    entropy: isUnconstrained[i]
      ? entropy[all[0].tokens[0]]
      : -shares.reduce((sum, share) => sum + share * Math.log(share), 0),
    shares,
  };
});

/**
 * Converts derivatives with respect to alternatives' scores into derivatives with respect to their
 * tokens' log-probabilities.
 */
function byTokens(slopes: readonly (readonly number[])[]): number[] {
  return alternatives.flatMap((all, i) =>
    all.flatMap(({ tokens, weight }, j) => tokens.map(() => weight * slopes[i][j])),
  );
}

async function evaluate(weights: { logProb: readonly number[]; entropy: readonly number[] }) {
  const decided = constrainedPolicyNodes(policy);
  const weigh = (node: Node, by: string) => reduceSum(mul(node, input(by, "float32", [decided.selected])));
  const objective = {
    loss: add(weigh(decided.logProbs, "logProbWeights"), weigh(decided.entropy!, "entropyWeights")),
    statistics: {
      logProbs: decided.logProbs,
      maxLogProbs: decided.maxLogProbs,
      entropy: decided.entropy!,
      values: decided.values!,
      hidden: decided.hidden,
    },
  };
  return evaluateLoss(
    runtime,
    objective,
    { logProbs: policy.logProbs },
    {
      ...constraintFeeds({ alternatives, chosen, isUnconstrained } as unknown as TurnBatch),
      logProbWeights: float32(weights.logProb),
      entropyWeights: float32(weights.entropy),
      logProbs: float32(logProbs),
      maxLogProbs: float32(maxLogProbs),
      entropy: float32(entropy),
      values: float32(values),
      hidden: tensor(
        "float32",
        [7, 2],
        Float32Array.from({ length: 14 }, (_, i) => i),
      ),
    },
  );
}

describe("constrainedPolicyNodes", () => {
  it("computes each decision's log-probability and entropy among its alternatives", async () => {
    const { statistics } = await evaluate({ logProb: [1, 1, 1], entropy: [1, 1, 1] });
    expected.forEach(({ logProb, maxLogProb, entropy: own }, i) => {
      expect(statistics.maxLogProbs[i]).toBeCloseTo(maxLogProb, 5);
      expect(statistics.logProbs[i]).toBeCloseTo(logProb, 5);
      expect(statistics.entropy[i]).toBeCloseTo(own, 5);
    });
  });

  it("reads values and hidden states once per decision", async () => {
    const { statistics } = await evaluate({ logProb: [1, 1, 1], entropy: [1, 1, 1] });
    expect([...statistics.values]).toEqual([10, 13, 14]);
    expect([...statistics.hidden]).toEqual([0, 1, 6, 7, 8, 9]);
  });

  it("raises the chosen alternative relative to the others, and an unconstrained token on its own", async () => {
    const weights = [1, 2, 3];
    const { gradients } = await evaluate({ logProb: weights, entropy: [0, 0, 0] });
    // d log p(chosen) / d log p(i) = 1{i chosen} - p(i)
    const slopes = expected.map(({ shares }, i) =>
      shares.map((share, j) => weights[i] * ((j === chosen[i] ? 1 : 0) - (isUnconstrained[i] ? 0 : share))),
    );
    byTokens(slopes).forEach((slope, i) => expect(gradients.logProbs[i]).toBeCloseTo(slope, 5));
  });

  it("raises the entropy of a choice by flattening its distribution", async () => {
    const { gradients } = await evaluate({ logProb: [0, 0, 0], entropy: [1, 0, 2] });
    // d H / d log p(i) = -p(i) (log p(i) + H)
    const slopes = expected.map(({ shares, entropy: own }, i) =>
      shares.map((share) => (isUnconstrained[i] ? 0 : -[1, 0, 2][i] * share * (Math.log(share) + own))),
    );
    byTokens(slopes).forEach((slope, i) => expect(gradients.logProbs[i]).toBeCloseTo(slope, 5));
  });
});
