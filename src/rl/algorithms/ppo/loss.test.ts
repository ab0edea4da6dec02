import { afterAll, describe, expect, it } from "vitest";
import { input, dim, type Node } from "../../../engine/graph/index.js";
import { evaluateLoss, type LossEvaluation } from "../../../../test/parity/rl/evaluate-nodes.js";
import { Runtime } from "../../../engine/runtime/runtime.js";
import { float32 } from "../../../engine/tensor/tensor.js";
import { resolvePpoConfig, type PpoOptions } from "./settings.js";
import { ppoLoss, type PpoTokens } from "./loss.js";
import { lossNodes, tokenInputs } from "../shared/loss-nodes.js";
import { exceedsRatioThreshold, exceedsTargetKl, ppoBatchMetrics, ppoMetrics } from "./metrics.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

const selected = dim("selected");
const policy = {
  selected,
  logProbs: input("logProbs", "float32", [selected]),
  values: input("values", "float32", [selected]),
  entropy: input("entropy", "float32", [selected]),
};

type Tokens = PpoTokens & Readonly<Record<"logProbs" | "values" | "entropy", readonly number[]>>;

const batch: Tokens = {
  logProbs: [-1, -2, -0.5, -3],
  values: [0.5, 1, -1, 2],
  entropy: [1, 2, 0.5, 0.25],
  oldLogProbs: [-1.1, -1.5, -0.5, -3.05],
  oldValues: [0.4, 0.2, -0.5, 1],
  advantages: [1, -2, 0.5, -1],
  returns: [1, 0, -2, 3],
};

function run(tokens: Tokens, options: PpoOptions = {}, total = tokens.logProbs.length): Promise<LossEvaluation> {
  return evaluateLoss(runtime, ppoLoss(lossNodes(policy), resolvePpoConfig(options)), leavesOf(options), {
    logProbs: float32(tokens.logProbs),
    values: float32(tokens.values),
    entropy: float32(tokens.entropy),
    ...tokenInputs([tokens], { tokens: total }),
  });
}

function leavesOf({ entropyCoef = 0 }: PpoOptions): Record<string, Node> {
  const { logProbs, values, entropy } = policy;
  return entropyCoef === 0 ? { logProbs, values } : { logProbs, values, entropy };
}

const part = (tokens: Tokens, from: number, to: number): Tokens =>
  Object.fromEntries(
    Object.entries(tokens).map(([name, values]) => [name, Array.from(values as number[]).slice(from, to)]),
  ) as unknown as Tokens;

describe("ppoLoss", () => {
  it("raises the probability of tokens with positive advantage and lowers that of others", async () => {
    const onPolicy = { ...batch, oldLogProbs: batch.logProbs };
    const { logProbs } = (await run(onPolicy)).gradients;
    expect([...logProbs]).toEqual([-1 / 4, 2 / 4, -0.5 / 4, 1 / 4]);
  });

  it("moves values towards the returns", async () => {
    const { values } = (await run({ ...batch, oldValues: batch.values })).gradients;
    batch.values.forEach((value, i) => expect(values[i]).toBeCloseTo((0.1 * (value - batch.returns[i])) / 4, 6));
  });

  it("has no gradient outside the clipping range", async () => {
    // Ratios e^0.5 and e^-0.5: out of the range on either side.
    const moved = { ...batch, oldLogProbs: [-1.5, -2.5, 0, -2.5] };
    const { gradients, statistics } = await run(moved);
    // Advantages 1 (clipped above), -2 (still wrong), 0.5 (still wrong), -1 (clipped below).
    expect([...gradients.logProbs].map((slope) => slope !== 0)).toEqual([false, true, true, false]);
    expect(statistics.clipFraction[0]).toBe(0.5);
  });

  it("has the value of its definition, and statistics to go with it", async () => {
    const { loss, statistics, gradients } = await run(batch, { vfCoef: 0.3 });
    const means = Object.fromEntries(
      Object.entries(statistics).flatMap(([name, values]) => (values.length === 1 ? [[name, values[0]]] : [])),
    );
    const ratios = [Math.exp(0.1), Math.exp(-0.5), 1, Math.exp(0.05)];
    // Only the second ratio is outside of 0.8 to 1.2.
    const policyLoss = (-ratios[0] + 2 * 0.8 - 0.5 + ratios[3]) / 4;
    // Values clipped to 0.2 around the old ones: 0.5, 0.4, -0.7, 1.2. The larger error counts.
    const valueLoss = (0.5 ** 2 + 1 ** 2 + 1.3 ** 2 + 1.8 ** 2) / 8;
    const expected = {
      policyLoss,
      valueLoss,
      entropy: 3.75 / 4,
      approxKl: (0.1 ** 2 + 0.5 ** 2 + 0.05 ** 2) / 8,
      policyKl: (-0.1 + 0.5 - 0.05) / 4,
      clipFraction: 1 / 4,
      ratio: (ratios[0] + ratios[1] + ratios[2] + ratios[3]) / 4,
      valuePrediction: 2.5 / 4,
      valueError: (0.5 ** 2 + 1 + 1 + 1) / 4,
      valueClipFraction: 2 / 4,
    };
    expect(means).toEqual(
      Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, expect.closeTo(value, 6) as number])),
    );
    expect(loss).toBeCloseTo(policyLoss + 0.3 * valueLoss, 6);
    // Where the clipped error is larger, the value has no gradient.
    expect([...gradients.values].slice(1)).toEqual([expect.closeTo((0.3 * 1) / 4, 6), 0, 0]);
  });

  it("adds an entropy bonus, if configured", async () => {
    const without = await run(batch);
    const { loss, gradients } = await run(batch, { entropyCoef: 0.1 });
    expect(loss).toBeCloseTo(without.loss - 0.1 * (3.75 / 4), 6);
    for (const slope of gradients.entropy) expect(slope).toBeCloseTo(-0.1 / 4, 7);
  });

  it("is the same in two micro-batches as in one", async () => {
    const whole = await run(batch, { entropyCoef: 0.05 });
    const parts = [
      await run(part(batch, 0, 1), { entropyCoef: 0.05 }, 4),
      await run(part(batch, 1, 4), { entropyCoef: 0.05 }, 4),
    ];
    const near = (values: Float32Array) => Array.from(values, (value) => expect.closeTo(value, 6) as unknown);
    expect(parts[0].loss + parts[1].loss).toBeCloseTo(whole.loss, 6);
    for (const [name, values] of Object.entries(whole.statistics)) {
      const [first, second] = parts.map(({ statistics }) => statistics[name]);
      // Sums add up; values of single tokens are joined.
      const joined = values.length === 1 ? [first[0] + second[0]] : [...first, ...second];
      expect([name, ...joined]).toEqual([name, ...near(values)]);
    }
    for (const [name, slopes] of Object.entries(whole.gradients)) {
      const [first, second] = parts.map(({ gradients }) => gradients[name]);
      expect([name, ...first, ...second]).toEqual([name, ...near(slopes)]);
    }
  });

  it("requires a value head, and entropies for an entropy bonus", () => {
    const config = resolvePpoConfig({ entropyCoef: 0.1 });
    expect(() => ppoLoss(lossNodes({ ...policy, values: undefined }), config)).toThrow("value head");
    expect(() => ppoLoss(lossNodes({ ...policy, entropy: undefined }), config)).toThrow("entropyCoef is 0.1");
    expect(
      Object.keys(ppoLoss(lossNodes({ ...policy, entropy: undefined }), resolvePpoConfig()).statistics!),
    ).not.toContain("entropy");
  });
});

describe("ppoMetrics", () => {
  it("computes the explained variance of the critic", () => {
    const tokens = { advantages: [0, 0], returns: [1, 3], oldValues: [0, 1] };
    expect(ppoMetrics({ valueError: 0 }, tokens)["val/var_explained"]).toBe(1);
    expect(ppoMetrics({ valueError: 2 }, tokens)["val/var_explained"]).toBe(0);
    const equal = { ...tokens, returns: [0.1 + 0.2, 0.3] };
    expect(ppoMetrics({ valueError: 1 }, equal)["val/var_explained"]).toBeNaN();
  });

  it("has explained variance only where returns vary by more than rounding errors", () => {
    const explained = (...returns: number[]) =>
      ppoMetrics({ valueError: 0 }, { advantages: [0, 0], returns, oldValues: [0, 0] })["val/var_explained"];
    // Variances of 5e-11 and 1.5e-10 times the squared mean.
    expect(explained(1000 - 5e-3, 1000 + 5e-3)).toBeNaN();
    expect(explained(1000 - 8.7e-3, 1000 + 8.7e-3)).toBe(1);
    expect(explained(-1000 - 8.7e-3, -1000 + 8.7e-3)).toBe(1);
  });

  it("describes a batch before it is trained on", () => {
    const samples = [
      { kls: [1, 2], oldLogProbs: [-1, -2], nonScoreRewards: [-0.5, -1], score: 1 },
      { kls: [-1], oldLogProbs: [-0.5], nonScoreRewards: [0.5], score: 5 },
    ];
    const withoutKl = {
      "objective/entropy": (3 + 0.5) / 2,
      "objective/non_score_reward": expect.closeTo(-1 / 3, 12) as number,
      "objective/scores": 3,
      "objective/scores_std": expect.closeTo(Math.sqrt(8), 12) as number,
    };
    expect(ppoBatchMetrics(samples, 0)).toEqual({ ...withoutKl, "objective/kl_coef": 0 });
    expect(ppoBatchMetrics(samples, 1)).toEqual({ ...withoutKl, "objective/kl_coef": 1, "objective/kl": 1 });
  });

  it("detects a divergence beyond 1.5 times the target", () => {
    expect(exceedsTargetKl({ approxKl: 0.16 }, { targetKl: 0.1 })).toBe(true);
    expect(exceedsTargetKl({ approxKl: 0.14 }, { targetKl: 0.1 })).toBe(false);
    expect(exceedsTargetKl({ approxKl: 100 }, { targetKl: 0 })).toBe(false);
    expect(exceedsTargetKl({}, { targetKl: 0.1 })).toBe(false);
  });

  it("detects a minibatch beyond the ratio threshold", () => {
    expect(exceedsRatioThreshold({ ratio: 10 }, { ratioThreshold: 10 })).toBe(false);
    expect(exceedsRatioThreshold({ ratio: 10.1 }, { ratioThreshold: 10 })).toBe(true);
    expect(exceedsRatioThreshold({}, { ratioThreshold: 1.5 })).toBe(false);
  });
});
