import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { expectClose, request, trainerLogProbs, whole } from "../../../test/support/sampler.js";
import { neg, reduceSum } from "../../engine/graph/index.js";
import { Sampler } from "../../generation/sampling/sampler.js";
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
async function trainOnce(name: string, options: ModelOptions) {
  const base = await CausalLM.open(fixture(name), { device: "cpu", threads: 1, ...options });
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
    const exact = await trainOnce(name, {});
    const rounded = await trainOnce(name, { backwardPrecision: "int8" });
    expect(rounded.logProbs).toEqual(exact.logProbs);
    expect(rounded.loss).toBeCloseTo(exact.loss, 3);
    expect(cosine(rounded.gradient, exact.gradient)).toBeGreaterThan(0.99);
    expect(cosine(rounded.gradient, exact.gradient)).toBeLessThan(0.9999999);
  });
});

describe.each(["llama", "gpt2"])("quantize in %s", (name) => {
  it("yields nearly the values and the gradient of float32 at 8 bits", async () => {
    const exact = await trainOnce(name, {});
    const results = [
      await trainOnce(name, { quantize: 8 }),
      await trainOnce(name, { quantize: 8, backwardPrecision: "int8" }),
    ];
    for (const { logProbs, gradient } of results) {
      logProbs.forEach((logProb, i) => expect(Math.abs(logProb - exact.logProbs[i])).toBeLessThan(0.15));
      expect(logProbs).not.toEqual(exact.logProbs);
      expect(cosine(gradient, exact.gradient)).toBeGreaterThan(0.99);
    }
    expect(results[1].logProbs).toEqual(results[0].logProbs);
    expect(results[1].gradient).not.toEqual(results[0].gradient);
  });

  it.each([8, 4] as const)(
    "samples with the trainer's log-probabilities at %d bits, in a batch and alone",
    async (quantize) => {
      const base = await CausalLM.open(fixture(name), { device: "cpu", threads: 1, quantize });
      const model = await loadAdapter(base, `${fixture(name)}/adapter`);
      const [scoring, sampler] = [await ScoringGraph.create(model), await Sampler.create(model)];
      const ask = (row: number) => sampler.sample(request(ROWS[row], row, { maxNewTokens: 6 }));
      const outputs = [...(await Promise.all(ROWS.map((_, row) => ask(row)))), await ask(0)];
      for (const [i, output] of outputs.entries()) {
        const prompt = ROWS[i % ROWS.length];
        expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(prompt, output), prompt.length));
      }
      expect(outputs[2].tokens).toEqual(outputs[0].tokens);
      await model.close();
    },
  );
});

it.each<[ModelOptions, RegExp]>([
  [{ quantize: 4 }, /does not apply to the weights of quantize 4/u],
  [{ device: "webgpu" }, /is for the processor, and the device is webgpu/u],
])("backwardPrecision int8 is refused with %j", async (options, message) => {
  const opening = CausalLM.open(fixture("llama"), { ...options, backwardPrecision: "int8" });
  await expect(opening).rejects.toMatchObject({
    code: "INVALID_ARGUMENT",
    message: expect.stringMatching(message) as string,
  });
});
