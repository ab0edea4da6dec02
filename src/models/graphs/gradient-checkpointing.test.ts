import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { neg, reduceSum } from "../../engine/graph/index.js";
import { CausalLM, type ModelOptions } from "../causal-lm.js";
import { getPeftModel } from "../adapters/get-peft-model.js";
import { loadAdapter } from "../save-model.js";
import { TrainingGraph } from "./training-graph.js";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../test/fixtures/models/${name}`, import.meta.url));

const ROWS = [
  [20, 21, 22, 7, 9],
  [10, 11, 5],
];
const batch = {
  groups: [{ prefix: [5, 6, 7, 8], rows: ROWS }],
  selected: ROWS.flatMap((row, i) => row.map((_, index) => ({ group: 0, row: i, index }))),
};

const opened: CausalLM[] = [];
afterAll(() => Promise.all(opened.map((model) => model.close())));

async function open(name: string, options: ModelOptions): Promise<CausalLM> {
  const model = await CausalLM.open(fixture(name), { device: "cpu", threads: 1, ...options });
  opened.push(model);
  return model;
}

async function computeGradient(model: CausalLM): Promise<number[]> {
  const graph = await TrainingGraph.create(model, (policy) => ({ loss: neg(reduceSum(policy.logProbs)) }));
  await graph.run(batch, {}, { random: new RandomStream(1) });
  await graph.release();
  return Array.from((await model.runtime.read(model.parameters.gradients)).data as Float32Array);
}

describe.each(["llama", "gpt2", "gemma3", "phi", "qwen3"])("gradientCheckpointing in %s", (name) => {
  it.each<[string, ModelOptions]>([
    ["float32 weights", {}],
    ["8 bits", { quantize: 8 }],
    ["4 bits", { quantize: 4 }],
    ["gradients in 8 bits", { backwardPrecision: "int8" }],
  ])("yields exactly the gradient of kept values, with %s", async (_, options) => {
    const [kept, recomputed] = await Promise.all(
      [false, true].map(async (gradientCheckpointing) =>
        computeGradient(
          await loadAdapter(await open(name, { ...options, gradientCheckpointing }), `${fixture(name)}/adapter`),
        ),
      ),
    );
    expect(kept.some((value) => value !== 0)).toBe(true);
    expect(recomputed).toEqual(kept);
  });
});

describe("gradientCheckpointing", () => {
  it("yields exactly the gradient of kept values with dropout, and with an adapter on the last layer", async () => {
    for (const config of [{ loraDropout: 0.5 }, { layersToTransform: [1] }]) {
      const gradients = [false, true].map(async (gradientCheckpointing) =>
        computeGradient(
          await getPeftModel(await open("llama", { gradientCheckpointing }), { r: 4, seed: 3, ...config }),
        ),
      );
      const [kept, recomputed] = await Promise.all(gradients);
      expect(recomputed).toEqual(kept);
    }
  });
});
