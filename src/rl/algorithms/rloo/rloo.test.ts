import { afterAll, describe, expect, it } from "vitest";
import { input, dim } from "../../../engine/graph/index.js";
import { evaluateLoss } from "../../../../test/parity/rl/evaluate-nodes.js";
import { Runtime } from "../../../engine/runtime/runtime.js";
import { float32 } from "../../../engine/tensor/tensor.js";
import { rlooAdvantages } from "./advantages.js";
import { resolveRlooConfig, rlooSettings, type RlooOptions } from "./settings.js";
import { scoreCompletions } from "../../../../test/support/turns.js";
import type { MinibatchTotals } from "../algorithm-definition.js";
import { rlooInputs, rlooLoss, rlooMetrics } from "./loss.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

describe("resolveRlooConfig", () => {
  it("has TRL 1.16's defaults", () => {
    expect(resolveRlooConfig()).toMatchObject({ numGenerations: 2, beta: 0.05, epsilon: 0.2, epsilonHigh: 0.2 });
    expect(resolveRlooConfig()).toMatchObject({ normalizeAdvantages: false, rewardClipMin: undefined });
    for (const { source } of Object.values(rlooSettings)) expect(source).toMatch(/TRL|ORLLLaM/);
  });

  it("rejects an empty range of rewards", () => {
    expect(() => resolveRlooConfig({ rewardClipMin: 1, rewardClipMax: 0 })).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT" }),
    );
  });
});

describe("rlooAdvantages", () => {
  const compute = (rewards: readonly number[], options: RlooOptions = {}, kls?: readonly number[]) => {
    const config = resolveRlooConfig({ numGenerations: 3, beta: 0, ...options });
    const completions = scoreCompletions(
      rewards.map((reward) => [reward]),
      { groupSize: 3, kls },
    );
    return rlooAdvantages(completions, config).advantages.map(([row]) => row[0]);
  };

  it("subtracts the mean of the others", () => {
    expect(compute([1, 2, 6])).toEqual([1 - 4, 2 - 3.5, 6 - 1.5]);
  });

  it("subtracts the KL penalty after clipping", () => {
    // Rewards of 0.5, 2 and 5.
    const found = compute([1, 2, 6], { beta: 0.5, rewardClipMax: 4 }, [1, 0, -2]);
    expect(found).toEqual([0.5 - 3.5, 2 - 2.75, 5 - 1.25]);
  });

  it("reports the KL of the completions, if it is weighted", () => {
    const config = { numGenerations: 3, batchSize: 3 };
    const completions = scoreCompletions([[1], [2], [6]], { groupSize: 3, kls: [1, 0, -4] });
    const metricsOf = (beta: number) => rlooAdvantages(completions, resolveRlooConfig({ ...config, beta })).metrics;
    expect(metricsOf(0.5)).toEqual({ kl: -1 });
    expect(metricsOf(1)).toEqual({ kl: -1 });
    expect(metricsOf(0)).toEqual({});
  });

  it("adds the log-ratios of a turn's decisions, and has no penalty without a reference", () => {
    const [first, ...others] = scoreCompletions([[1], [2], [6]], { groupSize: 3 });
    const [turn] = first.turns;
    const oldLogProbs = Float64Array.of(-1, -2);
    const config = resolveRlooConfig({ numGenerations: 3, beta: 0.5 });
    const advantagesOf = (refLogProbs: Float64Array | undefined) =>
      rlooAdvantages([{ ...first, turns: [{ ...turn, oldLogProbs, refLogProbs }] }, ...others], config);
    const found = advantagesOf(Float64Array.of(-1.5, -4)).advantages;
    expect(Array.from(found[0][0])).toEqual([1 - 0.5 * 2.5 - 4, 1 - 0.5 * 2.5 - 4]);
    expect(Array.from(advantagesOf(undefined).advantages[0][0])).toEqual([1 - 4, 1 - 4]);
  });

  it("normalizes over the batch, in a game by seat, if configured", () => {
    const config = resolveRlooConfig({ numGenerations: 2, beta: 0, normalizeAdvantages: true });
    const completions = scoreCompletions([[1], [4], [0], [10], [3], [3], [8], [0]], { groupSize: 2 });
    const normalize = (values: readonly number[]) => {
      const center = values.reduce((sum, value) => sum + value, 0) / values.length;
      const squares = values.reduce((sum, value) => sum + (value - center) ** 2, 0);
      return values.map((value) => (value - center) / (Math.sqrt(squares / (values.length - 1)) + 1e-4));
    };
    const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 12) as number);
    const found = (seats: readonly (number | undefined)[]) =>
      rlooAdvantages(
        completions.map((completion, i) => ({ ...completion, seat: seats[i] })),
        config,
      ).advantages.map(([row]) => row[0]);
    const raw = [-3, 3, -10, 10, 0, 0, 8, -8];
    expect(found([])).toEqual(close(normalize(raw)));
    // The last group has them in the other order.
    const seats = [0, 1, 0, 1, 0, 1, 1, 0];
    const bySeat = [0, 1].map((seat) => normalize(raw.filter((_, i) => seats[i] === seat)));
    const next = [0, 0];
    expect(found(seats)).toEqual(close(seats.map((seat) => bySeat[seat][next[seat]++])));
  });

  it("gives 0 to a sample without others", () => {
    expect(compute([1, Number.NaN, Number.NaN])).toEqual([0, 0, 0]);
  });
});

describe("rlooLoss", () => {
  const selected = dim("selected");
  const logProbs = input("logProbs", "float32", [selected]);
  const range = { epsilon: 0.2, epsilonHigh: 0.2 };
  const sequences = [
    { length: 2, oldLogProb: -3, advantage: 1 },
    { length: 1, oldLogProb: -0.5, advantage: -1 },
    { length: 1, oldLogProb: -2, advantage: 2 },
  ];
  const values = [-1, -2, -0.5, -1.5];

  const run = (from: number, to: number, total?: number) => {
    const start = sequences.slice(0, from).reduce((sum, { length }) => sum + length, 0);
    const end = sequences.slice(0, to).reduce((sum, { length }) => sum + length, 0);
    return evaluateLoss(
      runtime,
      rlooLoss({ selected, logProbs, entropy: undefined }, range),
      { logProbs },
      {
        logProbs: float32(values.slice(start, end)),
        ...rlooInputs(sequences.slice(from, to), total === undefined ? undefined : { sequences: total, tokens: 4 }),
      },
    );
  };

  it("raises the probability of better sequences within the clipping range", async () => {
    const { loss, gradients, statistics } = await run(0, 3);
    // The third has moved by e^0.5 the right way.
    expect(loss).toBeCloseTo((-1 + 1 - 1.2 * 2) / 3, 6);
    expect([...gradients.logProbs]).toEqual(
      [-1 / 3, -1 / 3, 1 / 3, 0].map((slope) => expect.closeTo(slope, 6) as unknown),
    );
    const metrics = rlooMetrics({ ratio: statistics.ratio }, sequences, range);
    expect(metrics["clip_ratio/high_mean"]).toBeCloseTo(1 / 3, 12);
    expect(metrics["clip_ratio/low_mean"]).toBe(0);
  });

  it("is the same in two micro-batches as in one", async () => {
    const [whole, first, second] = [await run(0, 3), await run(0, 1, 3), await run(1, 3, 3)];
    expect(first.loss + second.loss).toBeCloseTo(whole.loss, 6);
    expect([...first.gradients.logProbs, ...second.gradients.logProbs]).toEqual([...whole.gradients.logProbs]);
  });
});

describe("rlooMetrics", () => {
  const range = { epsilon: 0.2, epsilonHigh: 0.3 };

  it("counts clipped completions: with a negative advantage below the range, with a positive one above", () => {
    const ratio = [0.5, 0.5, 1.5, 1.5, 1];
    const sequences = [-0.5, 0.5, -0.5, 0.5, 0.5].map((advantage) => ({ advantage }));
    expect(rlooMetrics({ ratio, entropy: [1, 4] }, sequences, range)).toEqual({
      entropy: 2.5,
      "policy/approxkl_avg": expect.closeTo((2 * Math.log(0.5) ** 2 + 2 * Math.log(1.5) ** 2) / 10, 12) as number,
      "clip_ratio/low_mean": 0.2,
      "clip_ratio/low_min": 0,
      "clip_ratio/high_mean": 0.2,
      "clip_ratio/high_max": 1,
      "clip_ratio/region_mean": 0.4,
    });
    expect(rlooMetrics({ ratio: [1] }, [{ advantage: 1 }], range)).not.toHaveProperty("entropy");
  });
});

describe("rlooInputs", () => {
  const inputsOf = (...options: [totals?: MinibatchTotals, config?: { entropyCoef: number }]) => {
    const inputs = Object.entries(rlooInputs([{ length: 1, oldLogProb: -3, advantage: 2 }], ...options));
    return Object.fromEntries(inputs.map(([name, { data }]) => [name, Array.from(data)]));
  };

  it("has weights of the entropy only for an entropy bonus", () => {
    const plain = { rows: [0], oldLogProbs: [-3], advantages: [2], weights: [1] };
    expect(inputsOf()).toEqual(plain);
    expect(inputsOf({ sequences: 1, tokens: 1 }, { entropyCoef: 1 })).toEqual({ ...plain, entropyWeights: [1] });
    expect(inputsOf({ sequences: 2, tokens: 4, entropyFactor: 0.5 }, { entropyCoef: 1 })).toEqual({
      ...plain,
      weights: [0.5],
      entropyWeights: [0.125],
    });
  });
});

describe("rlooLoss with an entropy bonus", () => {
  const selected = dim("selected");
  const logProbs = input("logProbs", "float32", [selected]);
  const entropy = input("entropy", "float32", [selected]);
  const config = { epsilon: 0.2, epsilonHigh: 0.2, entropyCoef: 0.1 };
  const sequences = [
    { length: 2, oldLogProb: -3, advantage: 0 },
    { length: 1, oldLogProb: -0.5, advantage: 0 },
  ];
  const update = { sequences: 2, tokens: 3, entropyFactor: 0.5 };

  it("adds the scheduled mean entropy of all tokens", async () => {
    const { loss, gradients } = await evaluateLoss(
      runtime,
      rlooLoss({ selected, logProbs, entropy }, config),
      { logProbs, entropy },
      { logProbs: float32([-1, -2, -0.5]), entropy: float32([1, 2, 6]), ...rlooInputs(sequences, update, config) },
    );
    expect(loss).toBeCloseTo(-0.1 * 0.5 * 3, 6);
    for (const slope of gradients.entropy) expect(slope).toBeCloseTo((-0.1 * 0.5) / 3, 7);
  });

  it("requires entropies for an entropy bonus", () => {
    expect(() => rlooLoss({ selected, logProbs, entropy: undefined }, config)).toThrow("RLOO's entropyCoef is 0.1");
  });
});
