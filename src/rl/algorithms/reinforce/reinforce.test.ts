import { afterAll, describe, expect, it } from "vitest";
import { input, dim } from "../../../engine/graph/index.js";
import { evaluateLoss } from "../../../../test/parity/rl/evaluate-nodes.js";
import { Runtime } from "../../../engine/runtime/runtime.js";
import { float32 } from "../../../engine/tensor/tensor.js";
import { mean, variance } from "../shared/statistics.js";
import { reinforceAdvantages, type ReinforceSample } from "./advantages.js";
import { reinforceSettings, resolveReinforceConfig } from "./settings.js";
import { lossNodes, tokenInputs } from "../shared/loss-nodes.js";
import { reinforceLoss } from "./loss.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

const sample = (kls: readonly number[], ...rewards: readonly number[]): ReinforceSample => ({
  kls,
  turns: rewards.map((reward, i) => ({ reward, end: i === rewards.length - 1 ? kls.length : i + 1 })),
});

/** (x - mean) / sqrt(variance + 1e-8), variance of the numbers as they are. */
function normalized(values: readonly number[]): unknown[] {
  const scale = Math.sqrt(variance(values, undefined, { unbiased: false }) + 1e-8);
  return values.map((value) => expect.closeTo((value - mean(values)) / scale, 9) as unknown);
}

describe("resolveReinforceConfig", () => {
  it("has OpenRLHF's and the paper's defaults", () => {
    expect(resolveReinforceConfig()).toMatchObject({ numGenerations: 1, baseline: "none", gamma: 1, klCoef: 0.01 });
    for (const { source } of Object.values(reinforceSettings)) expect(source).not.toBe("");
  });
});

describe("reinforceAdvantages", () => {
  it("normalizes returns over the batch, not the group", () => {
    const config = resolveReinforceConfig({ klCoef: 0 });
    const found = reinforceAdvantages([sample([0, 0], 1), sample([0], 4)], config);
    expect(found.flatMap((row) => [...row])).toEqual(normalized([1, 1, 4]));
  });

  it("subtracts the KL from the token on", () => {
    const config = resolveReinforceConfig({ klCoef: 0.5 });
    const found = reinforceAdvantages([sample([1, 2], 1), sample([-4], 4)], config);
    expect(found.flatMap((row) => [...row])).toEqual(normalized([1 - 1.5, 1 - 1, 4 + 2]));
  });

  it("subtracts the group mean by step with a group baseline", () => {
    const config = resolveReinforceConfig({ klCoef: 0, numGenerations: 2, baseline: "group", gamma: 0.5 });
    const samples = [sample([0, 0], 2, 4), sample([0], 2), sample([0], 10), sample([0], 0)].map((each, i) => ({
      ...each,
      group: Math.floor(i / 2),
    }));
    const found = reinforceAdvantages(samples, config);
    // Returns 4, 4 | 2 and 10 | 0; the second turn of the first sample has no counterpart.
    expect(found.flatMap((row) => [...row])).toEqual(normalized([1, 0, -1, 5, -5]));
  });

  it("compares with the members of the group alone", () => {
    const config = resolveReinforceConfig({ klCoef: 0, numGenerations: 2, baseline: "group" });
    const samples = [2, 10, 20, 40, 0, 5].map((reward, i) => ({ ...sample([0], reward), group: i % 3 }));
    // 2 and 40, 10 and 0, 20 and 5.
    const found = reinforceAdvantages(samples, config).flatMap((row) => [...row]);
    expect(found).toEqual(normalized([-19, 5, 7.5, 19, -5, -7.5]));
  });

  it("subtracts the seat's mean with a seat baseline, if there is one", () => {
    const config = { ...resolveReinforceConfig({ klCoef: 0 }), baseline: "seat" } as const;
    const samples = [{ ...sample([0], 3), seatBaseline: 2 }, { ...sample([0], 3), seatBaseline: -1 }, sample([0], 8)];
    const found = reinforceAdvantages(samples, config).flatMap((row) => [...row]);
    expect(found).toEqual(normalized([1, 4, 8]));
  });

  it("rejects turns that do not partition the tokens, and a group baseline without groups", () => {
    expect(() => reinforceAdvantages([{ kls: [0, 0], turns: [] }], resolveReinforceConfig())).toThrow("sample 0");
    expect(() => resolveReinforceConfig({ baseline: "group" })).toThrow("numGenerations");
  });
});

describe("reinforceLoss", () => {
  const selected = dim("selected");
  const nodes = {
    selected,
    logProbs: input("logProbs", "float32", [selected]),
    entropy: input("entropy", "float32", [selected]),
  };
  const batch = { logProbs: [-1, -2, -0.5], oldLogProbs: [-1, -2, -1.5], advantages: [1, -2, 3], entropy: [1, 2, 3] };

  const run = (from: number, to: number, total = to - from) =>
    evaluateLoss(
      runtime,
      reinforceLoss(lossNodes(nodes), { epsilon: 0.2, entropyCoef: 0.1 }),
      { logProbs: nodes.logProbs, entropy: nodes.entropy },
      {
        logProbs: float32(batch.logProbs.slice(from, to)),
        entropy: float32(batch.entropy.slice(from, to)),
        ...tokenInputs(
          [{ oldLogProbs: batch.oldLogProbs.slice(from, to), advantages: batch.advantages.slice(from, to) }],
          { tokens: total },
        ),
      },
    );

  it("raises the probability of better tokens within the clipping range, and adds entropy", async () => {
    const { loss, gradients, statistics } = await run(0, 3);
    expect(loss).toBeCloseTo((-1 + 2 - 1.2 * 3) / 3 - 0.1 * 2, 6);
    const slopes = [-1 / 3, 2 / 3, 0].map((slope) => expect.closeTo(slope, 6) as unknown);
    expect([...gradients.logProbs]).toEqual(slopes);
    for (const slope of gradients.entropy) expect(slope).toBeCloseTo(-0.1 / 3, 7);
    expect(statistics.clipFraction[0]).toBeCloseTo(1 / 3, 6);
    expect(statistics.approxKl[0]).toBeCloseTo(0.5 / 3, 6);
    expect(statistics.ratio[0]).toBeCloseTo((2 + Math.E) / 3, 6);
    expect(statistics.entropy[0]).toBeCloseTo(2, 6);
  });

  it("weights the entropy by its coefficient, and needs none without one", () => {
    const statisticsOf = (entropyCoef: number, entropy?: typeof nodes.entropy) =>
      Object.keys(reinforceLoss(lossNodes({ ...nodes, entropy }), { epsilon: 0.2, entropyCoef }).statistics!);
    expect(statisticsOf(0)).not.toContain("entropy");
    expect(statisticsOf(1, nodes.entropy)).toContain("entropy");
  });

  it("is the same in two micro-batches as in one", async () => {
    const [whole, first, second] = [await run(0, 3), await run(0, 1, 3), await run(1, 3, 3)];
    expect(first.loss + second.loss).toBeCloseTo(whole.loss, 6);
    const near = (values: Float32Array) => Array.from(values, (value) => expect.closeTo(value, 6) as unknown);
    for (const [name, values] of Object.entries(whole.statistics)) {
      const parts = [first.statistics[name], second.statistics[name]];
      // Sums add up; values of single tokens are joined.
      const joined = values.length === 1 ? [parts[0][0] + parts[1][0]] : parts.flatMap((part) => [...part]);
      expect([name, ...joined]).toEqual([name, ...near(values)]);
    }
  });

  it("requires entropies for an entropy bonus", () => {
    const config = { epsilon: 0.2, entropyCoef: 0.1 };
    expect(() => reinforceLoss(lossNodes({ ...nodes, entropy: undefined }), config)).toThrow(
      "REINFORCE++'s entropyCoef is 0.1",
    );
  });
});
