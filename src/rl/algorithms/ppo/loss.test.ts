import { afterAll, describe, expect, it } from "vitest";
import { input, dim, type Node } from "../../../engine/graph/index.js";
import { evaluateLoss, type LossEvaluation } from "../../../../test/parity/rl/evaluate-nodes.js";
import { Runtime } from "../../../engine/runtime/runtime.js";
import { float32 } from "../../../engine/tensor/tensor.js";
import { resolvePpoConfig, type PpoOptions } from "./settings.js";
import { ppoLoss, type PpoTokens } from "./loss.js";
import { lossNodes, tokenInputs } from "../shared/loss-nodes.js";
import { exceedsRatioThreshold, ppoMetrics } from "./metrics.js";

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

  it("detects a minibatch beyond the ratio threshold", () => {
    expect(exceedsRatioThreshold({ ratio: 10 }, { ratioThreshold: 10 })).toBe(false);
    expect(exceedsRatioThreshold({ ratio: 10.1 }, { ratioThreshold: 10 })).toBe(true);
  });
});
