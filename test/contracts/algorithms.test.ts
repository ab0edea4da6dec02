import { execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { mul, neg, reduceMean, reduceSum, type Node } from "../../src/engine.js";
import { defineAlgorithm, type LossNodes, settings } from "../../src/index.js";
import { algorithms } from "../../src/rl/algorithms/algorithms.js";
import { checkAlgorithm } from "../../src/testing.js";
import { runInHost } from "../support/command.js";

const TIMEOUT = 300_000;

/** A policy gradient with a loss to test. */
function policyGradient(loss: (nodes: LossNodes) => Node) {
  return defineAlgorithm({
    name: "test",
    settings: { learningRate: settings.number({ default: 1e-3, above: 0, description: "Learning rate of AdamW." }) },
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

const algorithm = "examples/.build/own-algorithm.js";
beforeAll(() => {
  // The packed package's test checks types.
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "examples", "--noCheck"]);
}, TIMEOUT);

describe("llamagym train --algorithm FILE", () => {
  it("runs the example with its settings as options, and resumes it", { timeout: TIMEOUT }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "llamagym-algorithm-"));
    try {
      const run = join(folder, "run");
      const args = ["train", "blackjack", "--algorithm", algorithm, "--value-coef", "0.3", "--turns", "128"];
      const trained = await runInHost([...args, "--threads", "1", "--output", run]);
      expect(trained).toMatchObject({ status: 0 });
      const config = JSON.parse(await readFile(join(run, "config.json"), "utf8")) as Record<string, unknown>;
      expect(config).toMatchObject({ algorithm: resolve(algorithm), valueCoef: 0.3, gamma: 0.99 });
      expect(await runInHost(["train", "--resume", run, "--turns", "256"])).toMatchObject({ status: 0 });
      const help = await runInHost(["train", "--algorithm", algorithm, "--help-all"]);
      expect(help.out).toContain("--value-coef");
      expect(help.out).not.toContain("--cliprange");
      const sweep = join(folder, "sweep");
      const common = ["--turns", "128", "--threads", "1", "--output", sweep];
      const search = ["-s", "valueCoef=0.2,0.4", "--entropy-coef", "0.2"];
      const swept = await runInHost(["sweep", "blackjack", "--algorithm", algorithm, ...search, ...common]);
      expect(swept).toMatchObject({ status: 0 });
      const best = JSON.parse(await readFile(join(sweep, "best.json"), "utf8")) as Record<string, unknown>;
      expect(best).toMatchObject({ algorithm: resolve(algorithm), entropyCoef: 0.2 });
      expect([0.2, 0.4]).toContain(best.valueCoef);
      expect(await runInHost(["sweep", "--output", sweep])).toMatchObject({ status: 0 });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("reports a missing module", async () => {
    const { status, err } = await runInHost(["train", "blackjack", "--algorithm", "./nowhere.js"]);
    expect([status, err]).toEqual([
      1,
      expect.stringContaining("nowhere.js does not exist. Give the path of a JavaScript or TypeScript file."),
    ]);
  });
});

describe("checkAlgorithm", () => {
  it.each(Object.entries(algorithms))("accepts %s", { timeout: TIMEOUT }, async (_, algorithm) => {
    await expect(checkAlgorithm<never>(algorithm)).resolves.toBeUndefined();
  });

  it("accepts the algorithm of the example, from outside the package", { timeout: TIMEOUT }, () => {
    const program = `
      import { checkAlgorithm } from "llamagym/testing";
      import { a2c } from "./${algorithm}";
      await checkAlgorithm(a2c);
      console.log("accepted");
    `;
    const args = ["--input-type=module", "--eval", program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["accepted\n", ""]);
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

  it("reports what a function that throws was called with", { timeout: TIMEOUT }, async () => {
    const broken = defineAlgorithm({
      name: "broken",
      settings: { learningRate: settings.number({ default: 1e-3, above: 0, description: "Learning rate of AdamW." }) },
      rollout: () => ({ kind: "turns", turns: 8 }),
      advantages: () => {
        throw new TypeError("no baseline");
      },
      loss: (nodes: LossNodes) => ({ loss: weightedLoss(nodes) }),
    });
    await expect(checkAlgorithm(broken)).rejects.toThrow(
      /in the check of its gradients: The algorithm broken: its `advantages` threw: no baseline \(with 8 trajectories in 8 groups, each of two turns/,
    );
  });

  it("respects the bounds of settings, and offers reference log-probabilities", { timeout: TIMEOUT }, async () => {
    const references: boolean[] = [];
    const withKl = (bounds: { readonly above?: number; readonly default: number }) =>
      defineAlgorithm({
        name: "kl",
        settings: {
          learningRate: settings.number({ default: 1e-3, above: 0, description: "Learning rate of AdamW." }),
          klCoef: settings.number({ ...bounds, min: 0, description: "Coefficient of the KL." }),
        },
        klSetting: "klCoef",
        rollout: () => ({ kind: "turns", turns: 8 }),
        advantages: (trajectories) => ({
          advantages: trajectories.map(({ turns }) =>
            turns.map(({ turn, oldLogProbs, refLogProbs }) => {
              references.push(refLogProbs !== undefined);
              return oldLogProbs.map(() => turn.reward);
            }),
          ),
        }),
        loss: (nodes) => ({ loss: weightedLoss(nodes) }),
      });
    await checkAlgorithm(withKl({ default: 0 }));
    expect(references).toContain(true);
    expect(references).toContain(false);
    await checkAlgorithm(withKl({ default: 0.5, above: 0 }));
  });
});
