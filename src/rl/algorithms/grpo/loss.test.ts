import { afterAll, describe, expect, it } from "vitest";
import { input, dim, type Node } from "../../../engine/graph/index.js";
import { evaluateLoss, type LossEvaluation } from "../../../../test/parity/rl/evaluate-nodes.js";
import { Runtime } from "../../../engine/runtime/runtime.js";
import { float32 } from "../../../engine/tensor/tensor.js";
import { LOSS_TYPES, resolveGrpoConfig, type GrpoOptions } from "./settings.js";
import { highEntropyMask } from "../shared/entropy-mask.js";
import type { MinibatchTotals } from "../algorithm-definition.js";
import { grpoInputs, minibatchTotals, type GrpoSequence } from "./loss-inputs.js";
import { grpoLoss } from "./loss.js";
import { grpoMetrics } from "./metrics.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

const selected = dim("selected");
const logProbs = input("logProbs", "float32", [selected]);
const entropy = input("entropy", "float32", [selected]);

interface Sequence extends GrpoSequence {
  readonly logProbs: readonly number[];
  readonly entropy: readonly number[];
}

const sequences: readonly Sequence[] = [
  {
    logProbs: [-1, -2, -0.5],
    oldLogProbs: [-1.1, -1.9, -0.45],
    advantages: [1, 1, 1],
    refLogProbs: [-1.2, -2, -0.25],
    policyMask: [1, 0, 1],
    entropy: [1, 0.25, 2],
  },
  {
    logProbs: [-3, -0.75],
    oldLogProbs: [-2.95, -0.8],
    advantages: [-2, -2],
    refLogProbs: [-2.5, -0.75],
    policyMask: [1, 1],
    entropy: [1.5, 3],
  },
];

function run(part: readonly Sequence[], options: GrpoOptions, update?: MinibatchTotals): Promise<LossEvaluation> {
  const config = resolveGrpoConfig(options);
  const leaves: Record<string, Node> = config.entropyCoef === 0 ? { logProbs } : { logProbs, entropy };
  return evaluateLoss(runtime, grpoLoss({ selected, logProbs, entropy }, config), leaves, {
    logProbs: float32(part.flatMap((sequence) => [...sequence.logProbs])),
    entropy: float32(part.flatMap((sequence) => [...sequence.entropy])),
    ...grpoInputs(part, config, update),
  });
}

const near = (values: ArrayLike<number>): unknown[] =>
  Array.from(values, (value) => expect.closeTo(value, 6) as unknown);

describe.each(LOSS_TYPES)("%s", (lossType) => {
  // For cispo the bound is on the ratio itself.
  const options: GrpoOptions = { lossType, ...(lossType === "cispo" ? { epsilonHigh: 2 } : {}) };

  it("raises the probability of tokens with positive advantage and lowers that of others", async () => {
    const onPolicy = sequences.map((sequence) => ({ ...sequence, oldLogProbs: sequence.logProbs }));
    const slopes = (await run(onPolicy, options)).gradients.logProbs;
    expect(Array.from(slopes, Math.sign)).toEqual([-1, -1, -1, 1, 1]);
  });

  it("is the same in two micro-batches as in one", async () => {
    const all: GrpoOptions = { ...options, beta: 0.1, entropyCoef: 0.05, topEntropyQuantile: 0.8 };
    const whole = await run(sequences, all);
    const update = minibatchTotals(sequences);
    const parts = [await run([sequences[0]], all, update), await run([sequences[1]], all, update)];
    expect(parts[0].loss + parts[1].loss).toBeCloseTo(whole.loss, 6);
    for (const kind of ["gradients", "statistics"] as const) {
      for (const [name, values] of Object.entries(whole[kind]))
        expect([name, ...parts[0][kind][name], ...parts[1][kind][name]]).toEqual([name, ...near(values)]);
    }
  });
});

describe("how a loss is averaged", () => {
  /**
   * The share of each token in the gradient, with advantages of 1 and no move: minus its weight.
   */
  async function weights(options: GrpoOptions, update?: MinibatchTotals): Promise<number[]> {
    const still = sequences.map((sequence) => ({
      ...sequence,
      oldLogProbs: sequence.logProbs,
      advantages: sequence.logProbs.map(() => 1),
    }));
    return Array.from((await run(still, options, update)).gradients.logProbs, (slope) => -slope);
  }

  it.each<[GrpoOptions, number, number]>([
    [{ lossType: "grpo" }, 1 / 6, 1 / 4],
    [{ lossType: "luspo" }, 1 / 2, 1 / 2],
    [{ lossType: "bnpo" }, 1 / 5, 1 / 5],
    [{ lossType: "dapo" }, 1 / 5, 1 / 5],
    [{ lossType: "dr_grpo", maxCompletionLength: 10 }, 1 / 20, 1 / 20],
  ])("%j", async (options, first, second) => {
    expect(await weights(options)).toEqual(near([first, first, first, second, second]));
  });

  it("averages over the whole step: masked sequences, other micro-batches, and dapo's mean step", async () => {
    const update = { sequences: 4, tokens: 10, meanTokens: 20 };
    expect((await weights({ lossType: "grpo" }, update))[0]).toBeCloseTo(1 / 12, 6);
    expect((await weights({ lossType: "bnpo" }, update))[0]).toBeCloseTo(1 / 10, 6);
    expect((await weights({ lossType: "dapo" }, update))[0]).toBeCloseTo(1 / 20, 6);
  });
});

describe("grpoLoss", () => {
  it("has the gradient of the sequence's mean ratio at every token of it (GSPO)", async () => {
    const { gradients, statistics } = await run(sequences, {
      lossType: "grpo",
      importanceSamplingLevel: "sequence",
    });
    const ratios = [Math.exp((0.1 - 0.1 - 0.05) / 3), Math.exp((-0.05 + 0.05) / 2)];
    expect([...statistics.ratio]).toEqual(near([ratios[0], ratios[0], ratios[0], ratios[1], ratios[1]]));
    expect([...gradients.logProbs]).toEqual(
      near([...Array(3).fill(-ratios[0] / 6), ...Array(2).fill((2 * ratios[1]) / 4)]),
    );
  });

  it("adds the k3 KL, which pulls towards the reference", async () => {
    const still = sequences.map((sequence) => ({
      ...sequence,
      oldLogProbs: sequence.logProbs,
      advantages: sequence.logProbs.map(() => 0),
    }));
    const { loss, gradients, statistics } = await run(still, {
      lossType: "bnpo",
      beta: 0.5,
      useBiasCorrectionKl: false,
    });
    const gaps = sequences.flatMap((sequence) => sequence.logProbs.map((value, t) => sequence.refLogProbs![t] - value));
    const kls = gaps.map((gap) => Math.exp(gap) - gap - 1);
    expect([...statistics.kl]).toEqual(near(kls));
    expect(loss).toBeCloseTo((0.5 * kls.reduce((sum, kl) => sum + kl, 0)) / 5, 6);
    expect([...gradients.logProbs]).toEqual(near(gaps.map((gap) => (0.5 * (1 - Math.exp(gap))) / 5)));
  });

  it("trains the policy only on the tokens of the mask, and entropy on the same", async () => {
    const { gradients } = await run(sequences, { lossType: "bnpo", topEntropyQuantile: 0.8, entropyCoef: 0.1 });
    expect(Array.from(gradients.logProbs, (slope) => slope !== 0)).toEqual([true, false, true, true, true]);
    expect([...gradients.entropy]).toEqual(near([-0.025, 0, -0.025, -0.025, -0.025]));
  });

  it("weights sequences by vespo's gamma, with bounds on what a token and a sequence may move", async () => {
    const phiOf = async (moves: readonly number[], options: GrpoOptions) => {
      const zeros = moves.map(() => 0);
      const sequence = { logProbs: moves, oldLogProbs: zeros, advantages: moves.map(() => 1), entropy: zeros };
      return (await run([sequence], { lossType: "vespo", ...options })).statistics.phi[0];
    };
    const gamma = (logW: number, k: number, lambda: number) => Math.exp(lambda + k * logW - lambda * Math.exp(logW));
    expect(await phiOf([0, 0], {})).toBe(1);
    expect(await phiOf([0.1, 0.2], {})).toBeCloseTo(gamma(0.3, 2, 3), 5);
    const slow = { vespoKPos: 0.1, vespoLambdaPos: 3 };
    expect(await phiOf([-25, 5], slow)).toBeCloseTo(gamma(-15, 0.1, 3), 5);
    expect(await phiOf([-15, -15], slow)).toBeCloseTo(gamma(Math.log(1e-8), 0.1, 3), 5);
    expect(await phiOf([50], slow)).toBe(0);
    expect(await phiOf([10], { vespoKPos: 0, vespoLambdaPos: 0 })).toBeCloseTo(gamma(10, 0, 1e-4), 5);
    // e^(40 * 15 - 327) is no float32.
    expect(await phiOf([15], { vespoKPos: 40, vespoLambdaPos: 0 })).toBe(0);
  });

  it("names missing inputs", () => {
    const config = resolveGrpoConfig({ beta: 0.1, topEntropyQuantile: 0.5 });
    const bare = { oldLogProbs: [-1, -2], advantages: [1, 1] };
    expect(() => grpoInputs([bare], config)).toThrow(
      "Sequence 0 has 2 tokens, but no policyMask; each token needs one.",
    );
    expect(() => grpoInputs([{ ...bare, policyMask: [1, 1], refLogProbs: [-1] }], config)).toThrow(
      "Sequence 0 has 2 tokens, but 1 refLogProbs",
    );
    const withBonus = resolveGrpoConfig({ entropyCoef: 0.1 });
    expect(() => grpoLoss({ selected, logProbs, entropy: undefined }, withBonus)).toThrow("GRPO's entropyCoef is 0.1");
  });
});

describe("highEntropyMask", () => {
  it("selects the tokens of the highest entropy, including ties with the threshold", () => {
    expect([...highEntropyMask([0.1, 0.5, 0.3, 0.2, 0.4], 0.4)]).toEqual([0, 1, 0, 0, 1]);
    expect([...highEntropyMask([1, 1, 1], 0.2)]).toEqual([1, 1, 1]);
    expect([...highEntropyMask([3, 1], 1)]).toEqual([1, 1]);
    expect(highEntropyMask([], 0.2)).toHaveLength(0);
  });
});

describe("grpoMetrics", () => {
  it("is finite for a step without tokens", () => {
    const metrics = grpoMetrics({ ratio: [], entropy: [] }, [{ advantages: [] }], resolveGrpoConfig());
    expect(Object.values(metrics).every(Number.isFinite)).toBe(true);
  });
});
