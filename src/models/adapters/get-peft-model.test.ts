import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { neg, reduceSum } from "../../engine/graph/index.js";
import { Optimizer } from "../../engine/optim/index.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { getPeftModel, type PeftOptions } from "./get-peft-model.js";
import { CausalLM } from "../causal-lm.js";
import { ScoringGraph, TrainingGraph } from "../graphs/training-graph.js";

const folder = fileURLToPath(new URL("../../../test/fixtures/models/gpt2", import.meta.url));

let base: CausalLM;
beforeAll(async () => void (base = await CausalLM.open(folder, { device: "cpu", threads: 1 })));
afterAll(() => base.close());

const row = [5, 6, 7, 8, 20, 21, 22];
const batch = {
  groups: [{ prefix: [], rows: [row] }],
  selected: row.slice(1).map((_, i) => ({ group: 0, row: 0, index: i + 1 })),
};

async function logProbs(model: CausalLM, options?: { adapter: boolean }): Promise<number[]> {
  const graph = await ScoringGraph.create(model);
  const scores = await graph.run(batch, options);
  await graph.release();
  return Array.from(scores.logProbs);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe("getPeftModel", () => {
  it("counts negative layers from the end and leaves out those before the first one", async () => {
    const count = base.config.layers.length;
    const layersOf = async (layersToTransform: number | readonly number[]) =>
      (await getPeftModel(base, { layersToTransform })).adapter!.config.layersToTransform;
    expect(await layersOf(-1)).toEqual([count - 1]);
    expect(await layersOf(Array.from({ length: count + 2 }, (_, i) => -1 - i))).toHaveLength(count);
    expect(await layersOf([0])).toEqual([0]);
    await expect(layersOf([-count - 1])).rejects.toThrow(`must be integers >= 0, got ${-count - 1}.`);
  });

  it.each(["wte", "lm_head", "c_attn"])(
    "adds an adapter of %s that changes nothing until it is trained",
    async (target) => {
      const model = await getPeftModel(base, { r: 4, targetModules: [target], seed: 1 });
      const before = await logProbs(base);
      (await logProbs(model)).forEach((value, i) => expect(value).toBeCloseTo(before[i], 5));

      const graph = await TrainingGraph.create(model, (policy) => ({ loss: neg(reduceSum(policy.logProbs)) }));
      const optimizer = new Optimizer(model.parameters, { learningRate: 0.02 });
      for (let step = 0; step < 5; step++) {
        await graph.run(batch, {});
        await optimizer.update();
      }
      expect(sum(await logProbs(model))).toBeGreaterThan(sum(before) + 0.1);
      (await logProbs(model, { adapter: false })).forEach((value, i) => expect(value).toBeCloseTo(before[i], 5));
    },
  );

  it.each<PeftOptions>([
    { useDora: true },
    { useDora: true, targetModules: ["wte", "lm_head"], loraDropout: 0.1 },
    { bias: "all" },
    { bias: "lora_only", loraBias: true },
    { modulesToSave: ["ln_f", "lm_head"] },
    { modulesToSave: ["wte"] },
    { modulesToSave: ["lm_head"], ensureWeightTying: true },
    { modulesToSave: ["wpe", "ln_1"], layersToTransform: [1] },
    { trainableTokenIndices: [5, 6] },
    { trainableTokenIndices: { lm_head: [7] } },
    { targetModules: ["wte"], ensureWeightTying: true },
  ])("trains an adapter with %j that changes nothing before, nor without it afterwards", async (options) => {
    const model = await getPeftModel(base, { targetModules: ["c_attn"], ...options, r: 4, seed: 1 });
    const before = await logProbs(base);
    (await logProbs(model)).forEach((value, i) => expect(value).toBeCloseTo(before[i], 5));

    const graph = await TrainingGraph.create(model, (policy) => ({ loss: neg(reduceSum(policy.logProbs)) }));
    const optimizer = new Optimizer(model.parameters, { learningRate: 0.02 });
    const values = await Promise.all(model.parameters.names.map((name) => model.parameters.read(name)));
    for (let step = 0; step < 5; step++) {
      await graph.run(batch, {}, { random: new RandomStream(step) });
      await optimizer.update();
    }
    await graph.release();
    expect(sum(await logProbs(model))).toBeGreaterThan(sum(before) + 0.02);
    for (const [i, name] of model.parameters.names.entries())
      expect([name, await model.parameters.read(name)]).not.toEqual([name, values[i]]);
    (await logProbs(model, { adapter: false })).forEach((value, i) => expect(value).toBeCloseTo(before[i], 5));
  });

  it.each<[PeftOptions, RegExp]>([
    [{ modulesToSave: ["score"] }, /`modulesToSave` "score" matches no module of this model\. Modules: .*ln_f/],
    [{ modulesToSave: ["c_attn"] }, /both name transformer\.h\.0\.attn\.c_attn/],
    [{ trainableTokenIndices: [24] }, /token ids from 0 to 23, got 24/],
    [{ trainableTokenIndices: [-1] }, /token ids from 0 to 23, got -1/],
    [{ trainableTokenIndices: [3, 3] }, /must not repeat/],
    [{ trainableTokenIndices: { c_attn: [1] } }, /names the module "c_attn"\. Supported: transformer\.wte, lm_head/],
    [{ trainableTokenIndices: [1], modulesToSave: ["wte"] }, /trains all rows/],
    [
      { trainableTokenIndices: { wte: [1], lm_head: [2] }, ensureWeightTying: true },
      /requires the same `trainableTokenIndices`/,
    ],
    [{ useDora: true, loraBias: true }, /does not apply with `useDora`/],
    [{ useDora: true, targetModules: ["wte"], ensureWeightTying: true }, /cannot tie them/],
  ])("refuses %j", async (options, message) => {
    await expect(getPeftModel(base, { targetModules: ["c_attn"], ...options })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(message) as string,
    });
  });

  it("excludes embedding and output matrix from all-linear, as PEFT does", async () => {
    const { adapter } = await getPeftModel(base, { targetModules: "all-linear" });
    const ends = [...adapter!.modules.keys()].map((name) => name.slice(name.lastIndexOf(".") + 1));
    expect(new Set(ends)).toEqual(new Set(["c_attn", "c_proj", "c_fc"]));
  });
});
