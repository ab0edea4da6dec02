import { afterAll, describe, expect, it } from "vitest";
import { input, dim, type Node } from "../../../engine/graph/index.js";
import { evaluateLoss, type LossEvaluation } from "../../../../test/parity/rl/evaluate-nodes.js";
import { Runtime } from "../../../engine/runtime/runtime.js";
import { float32 } from "../../../engine/tensor/tensor.js";
import { LOSS_TYPES, resolveGrpoConfig, type GrpoOptions } from "./settings.js";
import { highEntropyMask } from "../shared/entropy-mask.js";
import type { MinibatchTotals } from "../algorithm-definition.js";
import { grpoInputs, minibatchTotals, type GrpoSequence } from "./loss-inputs.js";
import { entropyBonusFactor, grpoLoss } from "./loss.js";
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

describe("the loss of moved tokens", () => {
  const half = { policyMask: [1, 1], entropy: [0, 0] };
  /** Log-ratios of 0.4 and -0.6, 0.9 and -0.2, -1.2 and -0.3. */
  const moved: readonly Sequence[] = [
    { logProbs: [-0.6, -1.6], oldLogProbs: [-1, -1], advantages: [0.5, 0.5], refLogProbs: [-1, -1.5], ...half },
    { logProbs: [-0.1, -1.2], oldLogProbs: [-1, -1], advantages: [-2, -2], refLogProbs: [-0.4, -1], ...half },
    { logProbs: [-2.2, -1.3], oldLogProbs: [-1, -1], advantages: [-1, -1], refLogProbs: [-2, -1.2], ...half },
  ];
  const tokens = moved.flatMap(({ logProbs: news, oldLogProbs, advantages, refLogProbs }, sequence) =>
    news.map((logProb, t) => ({
      sequence,
      logProb,
      ratio: Math.exp(logProb - oldLogProbs[t]),
      advantage: advantages[t],
      refLogRatio: refLogProbs![t] - logProb,
    })),
  );
  type Token = (typeof tokens)[number];
  const meanOver = (loss: (token: Token) => number) =>
    tokens.reduce((sum, token) => sum + loss(token), 0) / tokens.length;
  const clipRatio = (ratio: number) => Math.min(1.3, Math.max(0.8, ratio));
  const clipped = ({ ratio, advantage }: Token) => Math.max(-ratio * advantage, -clipRatio(ratio) * advantage);
  const bounds = { epsilon: 0.2, epsilonHigh: 0.3, beta: 0 };

  it("is the larger of both terms, with a bound on the ratio of negative advantages", async () => {
    const { loss } = await run(moved, { ...bounds, lossType: "bnpo" });
    expect(loss).toBeCloseTo(meanOver(clipped), 6);
    const bounded = await run(moved, { ...bounds, lossType: "bnpo", delta: 1.8 });
    const dual = ({ ratio, advantage }: Token) =>
      Math.max(-Math.min(ratio, 1.8) * advantage, -clipRatio(ratio) * advantage);
    expect(bounded.loss).toBeCloseTo(meanOver(dual), 6);
    expect(bounded.loss).not.toBeCloseTo(loss, 2);
    expect([...bounded.statistics.ratio]).toEqual(near(tokens.map(({ ratio }) => Math.min(ratio, 1.8))));
  });

  it("weights the log-probability by the bounded ratio with cispo", async () => {
    const { loss, gradients } = await run(moved, { lossType: "cispo", epsilonHigh: 1.6 });
    const weight = ({ ratio, advantage }: Token) => Math.min(ratio, 1.6) * advantage;
    expect(loss).toBeCloseTo(
      meanOver((token) => -weight(token) * token.logProb),
      6,
    );
    expect([...gradients.logProbs]).toEqual(near(tokens.map((token) => -weight(token) / 6)));
  });

  it("is a sigmoid of the ratio with sapo, steeper for negative advantages", async () => {
    const { loss, gradients } = await run(moved, {
      lossType: "sapo",
      sapoTemperaturePos: 0.5,
      sapoTemperatureNeg: 3,
    });
    const gate = ({ ratio, advantage }: Token) => {
      const temperature = advantage > 0 ? 0.5 : 3;
      const value = 1 / (1 + Math.exp(-temperature * (ratio - 1)));
      return { value: (4 / temperature) * value, slope: 4 * value * (1 - value) * ratio };
    };
    expect(loss).toBeCloseTo(
      meanOver((token) => -gate(token).value * token.advantage),
      5,
    );
    expect([...gradients.logProbs]).toEqual(near(tokens.map((token) => (-gate(token).slope * token.advantage) / 6)));
  });

  it("weights the log-probability by a sequence's phi with vespo", async () => {
    const options = { vespoKPos: 1, vespoLambdaPos: 0.5, vespoKNeg: 2, vespoLambdaNeg: 1.5 };
    const { loss, statistics, gradients } = await run(moved, { lossType: "vespo", ...options });
    const phi = [-0.2, 0.7, -1.5].map((logWeight, sequence) => {
      const [power, decay] = sequence === 0 ? [1, 0.5] : [2, 1.5];
      return Math.exp(decay + power * logWeight - decay * Math.exp(logWeight));
    });
    expect([...statistics.phi]).toEqual(near(tokens.map(({ sequence }) => phi[sequence])));
    expect(loss).toBeCloseTo(
      meanOver(({ sequence, advantage, logProb }) => -phi[sequence] * advantage * logProb),
      6,
    );
    expect([...gradients.logProbs]).toEqual(
      near(tokens.map(({ sequence, advantage }) => (-phi[sequence] * advantage) / 6)),
    );
  });

  it("excludes sequences with a negative advantage that have become improbable", async () => {
    const masked = async (offPolicyMaskThreshold: number) =>
      (await run(moved, { ...bounds, lossType: "bnpo", offPolicyMaskThreshold })).loss;
    const without = (excluded: readonly number[]) =>
      meanOver((token) => (excluded.includes(token.sequence) ? 0 : clipped(token)));
    // Mean log pi_old - log pi: 0.1, -0.35 and 0.75. The first has a positive advantage.
    expect(await masked(0.8)).toBeCloseTo(without([]), 6);
    expect(await masked(0.7)).toBeCloseTo(without([2]), 6);
    expect(await masked(0.05)).toBeCloseTo(without([2]), 6);
    expect(await masked(0)).toBeCloseTo(without([2]), 6);
  });

  it("keeps a sequence whose divergence is the threshold", async () => {
    const still = { logProbs: [-1.5, -2], oldLogProbs: [-1, -1.5], advantages: [-1, -1], ...half };
    const { gradients } = await run([still], { lossType: "bnpo", offPolicyMaskThreshold: 0.5, epsilon: 0.9 });
    expect([...gradients.logProbs]).toEqual(near([Math.exp(-0.5) / 2, Math.exp(-0.5) / 2]));
  });

  it("weights the KL by the ratio where its bias is corrected", async () => {
    const k3 = ({ refLogRatio }: Token) => Math.exp(refLogRatio) - refLogRatio - 1;
    for (const useBiasCorrectionKl of [false, true]) {
      const weight = ({ ratio }: Token) => (useBiasCorrectionKl ? ratio : 1);
      const { loss, statistics } = await run(moved, { ...bounds, lossType: "bnpo", beta: 0.4, useBiasCorrectionKl });
      expect([...statistics.kl]).toEqual(near(tokens.map((token) => k3(token) * weight(token))));
      expect(loss).toBeCloseTo(
        meanOver((token) => clipped(token) + 0.4 * k3(token) * weight(token)),
        6,
      );
    }
  });
});

describe("entropyBonusFactor", () => {
  it("is the coefficient, or 1 where an adaptive weight is part of the inputs", () => {
    expect(entropyBonusFactor({ entropyCoef: 0.3 })).toBe(0.3);
    expect(entropyBonusFactor({ entropyCoef: 0.3, useAdaptiveEntropy: false })).toBe(0.3);
    expect(entropyBonusFactor({ entropyCoef: 0.3, useAdaptiveEntropy: true })).toBe(1);
  });
});

describe("grpoInputs", () => {
  const one = { oldLogProbs: [-1], advantages: [2] };
  const inputsOf = (options: GrpoOptions, update?: MinibatchTotals) => {
    const inputs = Object.entries(grpoInputs([one], resolveGrpoConfig(options), update));
    return Object.fromEntries(inputs.map(([name, { data }]) => [name, Array.from(data)]));
  };

  it("has the inputs that the settings need, and no others", () => {
    const plain = { oldLogProbs: [-1], advantages: [2], weights: [1] };
    for (const lossType of ["bnpo", "dapo"] as const) expect(inputsOf({ lossType })).toMatchObject(plain);
    expect(inputsOf({})).not.toHaveProperty("policyMask");
    expect(inputsOf({})).not.toHaveProperty("entropyWeights");
    expect(inputsOf({ entropyCoef: 1 })).toMatchObject({ ...plain, entropyWeights: [1] });
    const totals = { sequences: 2, tokens: 8, entropyTokens: 4, entropyFactor: 0.5 };
    expect(inputsOf({ lossType: "bnpo", entropyCoef: 0.1 }, totals)).toMatchObject({
      weights: [1 / 8],
      entropyWeights: [0.125],
    });
  });
});

describe("grpoLoss", () => {
  it("reports entropies where the graph has them", async () => {
    const { statistics } = await run(sequences, {});
    expect([...statistics.entropy]).toEqual([1, 0.25, 2, 1.5, 3]);
    const without = grpoLoss({ selected, logProbs, entropy: undefined }, resolveGrpoConfig());
    expect(Object.keys(without.statistics!)).toEqual(["ratio"]);
  });

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
  const clipped = { ratio: [0.5, 1.5, 1, 0.7, 1.4, 1.6], kl: [1, 2, 3, 4, 5, 9], entropy: [1, 1, 1, 2, 2, 2] };
  const rows = [{ advantages: [-0.5, -0.5, -0.5] }, { advantages: [0.5, 0.5, 0.5] }];
  const config = { epsilon: 0.2, epsilonHigh: 0.3 };

  it("counts clipped tokens: with a negative advantage below the range, with a positive one above", () => {
    const squares = clipped.ratio.map((ratio) => Math.log(ratio) ** 2);
    expect(grpoMetrics(clipped, rows, resolveGrpoConfig({ ...config, lossType: "dapo" }))).toEqual({
      kl: 4,
      entropy: 1.5,
      "policy/approxkl_avg": expect.closeTo(squares.reduce((sum, square) => sum + square, 0) / 12, 12) as number,
      "clip_ratio/low_mean": expect.closeTo(1 / 6, 12) as number,
      "clip_ratio/high_mean": expect.closeTo(2 / 6, 12) as number,
      "clip_ratio/region_mean": 0.5,
      "clip_ratio/low_min": 0,
      "clip_ratio/high_max": expect.closeTo(2 / 3, 12) as number,
    });
    const bare = grpoMetrics({ ratio: [1] }, [{ advantages: [1] }], resolveGrpoConfig());
    expect(bare).not.toHaveProperty("kl");
    expect(bare).not.toHaveProperty("entropy");
  });

  it("counts sequences where they have one ratio, and those without tokens as not clipped", () => {
    const ratio = [0.5, 0.5, 0.6, 1.5];
    const sequence = [{ advantages: [-1, -1] }, { advantages: [-1] }, { advantages: [1] }];
    const options = { ...config, lossType: "grpo", importanceSamplingLevel: "sequence" } as const;
    const fractions = (all: readonly { advantages: readonly number[] }[]) => {
      const metrics = grpoMetrics({ ratio }, all, resolveGrpoConfig(options));
      return ["low_mean", "low_min", "high_mean", "high_max"].map((name) => metrics[`clip_ratio/${name}`]);
    };
    expect(fractions(sequence)).toEqual([2 / 3, 0, 1 / 3, 1]);
    expect(fractions([...sequence, { advantages: [] }])).toEqual([0.5, 0, 0.25, 1]);
  });

  it("leaves sequences without tokens out of the smallest fraction of tokens", () => {
    const all = [{ advantages: [-1, -1] }, { advantages: [] }];
    const metrics = grpoMetrics({ ratio: [0.5, 0.5] }, all, resolveGrpoConfig(config));
    expect([metrics["clip_ratio/low_min"], metrics["clip_ratio/high_max"]]).toEqual([1, 0]);
  });

  it("counts cispo's bounded ratios, and averages vespo's weights over sequences", () => {
    const cispo = grpoMetrics(clipped, rows, resolveGrpoConfig({ lossType: "cispo", epsilonHigh: 1.45 }));
    expect(cispo.cispo_clip_ratio).toBeCloseTo(1 / 6, 12);
    expect(cispo).not.toHaveProperty("clip_ratio/low_mean");
    expect(cispo).not.toHaveProperty("vespo/phi_seq_mean");
    const phi = [0.5, 0.5, 0.5, 0.25, 0.25, 0.25];
    const vespo = grpoMetrics(
      { ...clipped, phi },
      [...rows, { advantages: [] }],
      resolveGrpoConfig({ lossType: "vespo" }),
    );
    expect(vespo["vespo/phi_seq_mean"]).toBeCloseTo((0.5 + 0.25 + 1) / 3, 12);
    expect(vespo).not.toHaveProperty("cispo_clip_ratio");
    const dapo = grpoMetrics({ ...clipped, phi }, rows, resolveGrpoConfig());
    expect(dapo).not.toHaveProperty("vespo/phi_seq_mean");
    expect(dapo).not.toHaveProperty("cispo_clip_ratio");
  });

  it("is finite for a step without tokens", () => {
    const metrics = grpoMetrics({ ratio: [], entropy: [] }, [{ advantages: [] }], resolveGrpoConfig());
    expect(new Set(Object.values(metrics))).toEqual(new Set([0]));
  });
});
