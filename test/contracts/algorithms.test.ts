import { describe, expect, it } from "vitest";
import { mul, neg, reduceMean, reduceSum, type Node } from "../../src/engine.js";
import { defineAlgorithm, type LossNodes } from "../../src/index.js";
import { algorithms } from "../../src/rl/algorithms/algorithms.js";
import { checkAlgorithm } from "../../src/testing.js";

const TIMEOUT = 120_000;

/** A policy gradient with a loss to test. */
function policyGradient(loss: (nodes: LossNodes) => Node, description = "Learning rate of AdamW.") {
  return defineAlgorithm({
    name: "test",
    settings: { learningRate: { default: 1e-3, above: 0, description, source: "test" } },
    rollout: () => ({ kind: "turns", turns: 8 }),
    advantages: (trajectories) => ({
      advantages: trajectories.map(({ turns }) =>
        turns.map(({ turn, oldLogProbs }) => oldLogProbs.map(() => turn.reward)),
      ),
    }),
    loss: (nodes) => ({ loss: loss(nodes) }),
  });
}

const weightedLoss = ({ logProbs, perToken, weights }: LossNodes) =>
  neg(reduceSum(mul(weights, mul(logProbs, perToken("advantages")))));

describe("checkAlgorithm", () => {
  it.each(Object.entries(algorithms))("accepts %s", { timeout: TIMEOUT }, async (_, algorithm) => {
    await expect(checkAlgorithm<never>(algorithm)).resolves.toBeUndefined();
  });

  it("accepts the algorithm of the example, from outside the package", { timeout: TIMEOUT }, async () => {
    const { checkAlgorithm: checkFromOutside } = await import("llamagym/testing");
    const { a2c } = await import("../../examples/own-algorithm.js");
    await expect(checkFromOutside(a2c)).resolves.toBeUndefined();
  });

  it(
    "accepts a loss that is a weighted sum, and rejects a mean over the micro-batch",
    { timeout: TIMEOUT },
    async () => {
      await checkAlgorithm(policyGradient(weightedLoss));
      const unweighted = policyGradient(({ logProbs, perToken }) =>
        neg(reduceMean(mul(logProbs, perToken("advantages")))),
      );
      await expect(checkAlgorithm(unweighted)).rejects.toThrow("must be a sum over decisions");
    },
  );

  it("rejects a gradient at zero advantage", { timeout: TIMEOUT }, async () => {
    const constant = policyGradient(({ logProbs, weights }) => neg(reduceSum(mul(weights, logProbs))));
    await expect(checkAlgorithm(constant)).rejects.toThrow("with zero advantages");
  });

  it("rejects a setting without a description", async () => {
    await expect(checkAlgorithm(policyGradient(weightedLoss, ""))).rejects.toThrow("learningRate needs a description");
  });
});
