import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { neg, reduceSum } from "../../engine/graph/index.js";
import { CausalLM, type ModelOptions } from "../causal-lm.js";
import { loadAdapter } from "../save-model.js";
import { ScoringGraph, TrainingGraph } from "./training-graph.js";

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

/** Log-probabilities before training, and the loss's value and gradient. */
async function trainOnce(name: string, backwardPrecision: ModelOptions["backwardPrecision"]) {
  const base = await CausalLM.open(fixture(name), { device: "cpu", threads: 1, backwardPrecision });
  const model = await loadAdapter(base, `${fixture(name)}/adapter`);
  const { logProbs } = await (await ScoringGraph.create(model)).run(batch);
  const graph = await TrainingGraph.create(model, (policy) => ({ loss: neg(reduceSum(policy.logProbs)) }));
  const { loss } = await graph.run(batch, {});
  const gradient = Float32Array.from((await model.runtime.read(model.parameters.gradients)).data as Float32Array);
  await model.close();
  return { logProbs: Array.from(logProbs), loss: loss.data[0], gradient };
}

const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i], 0);
const cosine = (a: Float32Array, b: Float32Array): number => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

// GPT-2 stores its weights the other way round.
describe.each(["llama", "gpt2"])("backwardPrecision int8 in %s", (name) => {
  it("leaves values unchanged and yields nearly the same gradient", async () => {
    const [exact, rounded] = [await trainOnce(name, "float32"), await trainOnce(name, "int8")];
    expect(rounded.logProbs).toEqual(exact.logProbs);
    expect(rounded.loss).toBeCloseTo(exact.loss, 3);
    expect(cosine(rounded.gradient, exact.gradient)).toBeGreaterThan(0.99);
    expect(cosine(rounded.gradient, exact.gradient)).toBeLessThan(0.9999999);
  });
});

it.each<[ModelOptions, RegExp]>([
  [{ quantize: 8 }, /quantize 8 holds them in 8 bits/u],
  [{ device: "webgpu" }, /is for the processor, and the device is webgpu/u],
])("backwardPrecision int8 is refused with %j", async (options, message) => {
  const opening = CausalLM.open(fixture("llama"), { ...options, backwardPrecision: "int8" });
  await expect(opening).rejects.toMatchObject({
    code: "INVALID_ARGUMENT",
    message: expect.stringMatching(message) as string,
  });
});
