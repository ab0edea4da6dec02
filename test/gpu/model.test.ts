import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { whyNoGpu } from "../support/gpu.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { neg, reduceSum } from "../../src/engine/graph/index.js";
import { Optimizer } from "../../src/engine/optim/optimizer.js";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import { ScoringGraph, TrainingGraph } from "../../src/models/graphs/training-graph.js";
import { loadAdapter } from "../../src/models/save-model.js";

const reason = await whyNoGpu();
const folder = fileURLToPath(new URL("../fixtures/models/llama", import.meta.url));

const ROWS = [
  [20, 21, 22, 7, 9],
  [10, 11, 5],
];
const batch = {
  groups: [{ prefix: [5, 6, 7, 8], rows: ROWS }],
  selected: ROWS.flatMap((row, i) => row.map((_, index) => ({ group: 0, row: i, index }))),
};

const SAMPLING = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
const VARIANTS = [
  SAMPLING,
  { ...SAMPLING, temperature: 0 },
  { ...SAMPLING, temperature: 0.7, topK: 20 },
  { ...SAMPLING, topP: 0.8 },
  { ...SAMPLING, topK: 30, topP: 0.9, repetitionPenalty: 1.3 },
  { ...SAMPLING, minP: 0.1 },
];

async function sample(sampler: Sampler) {
  const outputs = await Promise.all(
    VARIANTS.map((sampling, seed) => {
      const stream = new RandomStream(seed);
      const random = () => stream.random();
      return sampler.sample({ prompt: [5, 6, 7, 8, 9], maxNewTokens: 8, stopTokens: new Set(), random, sampling });
    }),
  );
  return {
    tokens: outputs.map(({ tokens }) => tokens),
    logProbs: outputs.flatMap(({ logProbs, rawLogProbs }) => [...logProbs, ...rawLogProbs]),
  };
}

/** Everything that a device computes of a model, and what crosses the bus for it. */
async function compute(device: "cpu" | "webgpu") {
  const model = await loadAdapter(await CausalLM.open(folder, { device, threads: 1 }), `${folder}/adapter`);
  const count = async (work: () => Promise<unknown>) => {
    if (device === "cpu") return work().then(() => undefined);
    const before = (await model.runtime.getGpuReport()).counters;
    await work();
    const after = (await model.runtime.getGpuReport()).counters;
    const bytes = after.bytesUp + after.bytesDown - before.bytesUp - before.bytesDown;
    return { bytes, dispatches: after.dispatches - before.dispatches };
  };
  const scores = await (await ScoringGraph.create(model, { entropy: "value" })).run(batch);
  const sampler = await Sampler.create(model);
  const sampled = await sample(sampler);
  const sampling = await count(() => sample(sampler));
  const graph = await TrainingGraph.create(model, (policy) => ({ loss: neg(reduceSum(policy.logProbs)) }));
  const { loss } = await graph.run(batch, {});
  const gradient = (await model.runtime.read(model.parameters.gradients)).data as Float32Array;
  const optimizer = new Optimizer(model.parameters, { learningRate: 1e-2 });
  const update = await count(async () => {
    await graph.run(batch, {});
    await optimizer.update();
  });
  const parameters = (await model.runtime.read(model.parameters.values)).data as Float32Array;
  await model.close();
  return { scores, sampled, sampling, loss: loss.data[0], gradient, update, parameters };
}

function expectClose(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  const worst = Array.from(expected, (value, i) => Math.abs(value - actual[i])).reduce((a, b) => Math.max(a, b), 0);
  expect(worst).toBeLessThan(tolerance);
}

describe.skipIf(reason !== undefined)(`a model on the GPU${reason === undefined ? "" : ` (${reason})`}`, () => {
  let [cpu, gpu]: Awaited<ReturnType<typeof compute>>[] = [];
  beforeAll(async () => {
    cpu = await compute("cpu");
    gpu = await compute("webgpu");
  }, 600_000);

  it("has the CPU's log-probabilities and entropies", () => {
    expectClose(gpu.scores.logProbs, cpu.scores.logProbs, 1e-4);
    expectClose(gpu.scores.entropy!, cpu.scores.entropy!, 1e-4);
  });

  it("draws the CPU's tokens with every kind of filter", () => {
    expect(gpu.sampled.tokens).toEqual(cpu.sampled.tokens);
    expectClose(gpu.sampled.logProbs, cpu.sampled.logProbs, 1e-4);
  });

  it("has the CPU's loss, gradient and parameters after an update", () => {
    expect(Math.abs(gpu.loss - cpu.loss)).toBeLessThan(1e-3);
    const largest = cpu.gradient.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    expectClose(gpu.gradient, cpu.gradient, 1e-4 * largest);
    expectClose(gpu.parameters, cpu.parameters, 1e-3);
  });

  it("keeps caches, logits and gradients on the device", () => {
    // Eight steps of six rows.
    expect(gpu.sampling!.bytes / (8 * VARIANTS.length)).toBeLessThan(1024);
    expect(gpu.update!.bytes).toBeLessThan(100_000);
  });
});
