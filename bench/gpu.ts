import { parseArgs } from "node:util";
import {
  addAdapter,
  count,
  createTraining,
  drawBatch,
  drawTokens,
  lossInputs,
  sample,
  time,
} from "../src/app/cli/device-workload.js";
import { RandomStream } from "../src/core/random/random-stream.js";
import { Optimizer } from "../src/engine/optim/optimizer.js";
import type { Device } from "../src/engine/runtime/device.js";
import { Sampler } from "../src/generation/sampling/sampler.js";
import { CausalLM } from "../src/models/causal-lm.js";
import { getEmbeddedModelPath } from "../src/models/embedded-model.js";
import { ScoringGraph } from "../src/models/graphs/training-graph.js";
import { writeRandomModel } from "../test/support/random-model.js";

/**
 * Prints what this machine's GPU does, one JSON object per line: correctness compared with the CPU,
 * and speed.
 */
const { values: options } = parseArgs({
  options: {
    /** Folder or GGUF file of the larger model; default random weights in SmolLM2-135M's shape. */
    model: { type: "string" },
    device: { type: "string", default: "webgpu" },
    rows: { type: "string", default: "1,32" },
    /** Leaves out the comparison with the CPU. */
    fast: { type: "boolean", default: false },
    /** Only the embedded model. */
    small: { type: "boolean", default: false },
  },
});

const SMOLLM2 = {
  vocab_size: 49_152,
  hidden_size: 576,
  intermediate_size: 1536,
  num_hidden_layers: 30,
  num_attention_heads: 9,
  num_key_value_heads: 3,
  rope_theta: 100_000,
};

const start = performance.now();
const seconds = (since: number) => Number(((performance.now() - since) / 1000).toFixed(4));

async function openModel(path: string, device: Device): Promise<CausalLM> {
  return addAdapter(await CausalLM.open(path, { device }));
}

function print(name: string, value: object): void {
  console.log(JSON.stringify({ name, at: seconds(start), ...value }));
}

async function attempt(name: string, work: () => Promise<object>): Promise<void> {
  try {
    print(name, await work());
  } catch (error) {
    print(name, { error: (error as Error).message.slice(0, 2000) });
  }
}

function worst(expected: Float32Array, actual: Float32Array): { absolute: number; relative: number } {
  let [difference, scale] = [0, 0];
  expected.forEach((value, i) => {
    difference = Math.max(difference, Number.isFinite(actual[i]) ? Math.abs(value - actual[i]) : Infinity);
    scale = Math.max(scale, Math.abs(value));
  });
  return { absolute: difference, relative: difference / scale };
}

/** Log-probabilities, a gradient and greedy tokens. */
async function compute(path: string, device: Device) {
  const model = await openModel(path, device);
  const batch = drawBatch(model.config.vocabSize, 2, 12, 3, 10);
  const scoring = await ScoringGraph.create(model);
  const { logProbs } = await scoring.run(batch);
  const training = await createTraining(model);
  await training.run(batch, lossInputs(logProbs.map((value) => value - 0.01)));
  const gradient = (await model.runtime.read(model.parameters.gradients)).data as Float32Array;
  const sampler = await Sampler.create(model);
  const outputs = await sample(model, sampler, 3, 8);
  const tensors = model.parameters.names.map((name) => [name, model.parameters.view(name)] as const);
  await model.close();
  return { logProbs, gradient, tokens: outputs.map(({ tokens }) => tokens), tensors };
}

async function compareWithCpu(path: string): Promise<object> {
  const since = performance.now();
  const [expected, actual] = [await compute(path, "cpu"), await compute(path, options.device as Device)];
  const perTensor = expected.tensors.map(([name, { offset, shape }]) => {
    const end = offset + shape.reduce((product, size) => product * size, 1);
    const found = worst(expected.gradient.subarray(offset, end), actual.gradient.subarray(offset, end));
    return { name, ...found };
  });
  const [worstTensor] = perTensor.sort((a, b) => b.relative - a.relative);
  return {
    logProbs: worst(expected.logProbs, actual.logProbs),
    gradient: worst(expected.gradient, actual.gradient),
    worstTensor,
    equalTokens: JSON.stringify(expected.tokens) === JSON.stringify(actual.tokens),
    seconds: seconds(since),
  };
}

async function measureModel(label: string, path: string, runs: number): Promise<void> {
  const model = await openModel(path, options.device as Device);
  const vocabulary = model.config.vocabSize;
  const sampler = await Sampler.create(model);
  for (const rows of options.rows.split(",").map(Number)) {
    await attempt(`${label}: decode ${rows} rows`, async () => {
      const newTokens = 48;
      const { first, median } = await time(() => sample(model, sampler, rows, newTokens), runs);
      const counted = await count(model, () => sample(model, sampler, rows, newTokens));
      return { tokensPerSecond: Math.round((rows * newTokens) / median), first, median, newTokens, ...counted };
    });
  }
  await attempt(`${label}: LoRA step of 1,024 tokens`, async () => {
    const batch = drawBatch(vocabulary, 8, 64, 1, 64);
    const training = await createTraining(model);
    const inputs = lossInputs(new Float32Array(batch.selected.length).fill(-5));
    const optimizer = new Optimizer(model.parameters, { learningRate: 1e-6 });
    const step = async () => {
      await training.run(batch, inputs);
      await optimizer.update();
    };
    const { first, median } = await time(step, runs);
    const counted = await count(model, step);
    return { tokensPerSecond: Math.round(1024 / median), first, median, ...counted };
  });
  await attempt(`${label}: GRPO step, 32 completions of 48 tokens`, async () => {
    const training = await createTraining(model);
    const optimizer = new Optimizer(model.parameters, { learningRate: 1e-6 });
    const step = async () => {
      const outputs = await sample(model, sampler, 32, 48);
      const random = new RandomStream(3);
      const prefix = drawTokens(random, 24, vocabulary);
      const groups = Array.from({ length: 4 }, (_, g) => ({
        prefix,
        rows: outputs.slice(8 * g, 8 * g + 8).map(({ tokens }) => [...drawTokens(random, 8, vocabulary), ...tokens]),
      }));
      for (const [i, group] of groups.entries()) {
        const selected = group.rows.flatMap((tokens, row) =>
          tokens.slice(8).map((_, index) => ({ group: 0, row, index: index + 8 })),
        );
        const old = Float32Array.from(outputs.slice(8 * i, 8 * i + 8).flatMap(({ logProbs }) => [...logProbs]));
        await training.run({ groups: [group], selected }, lossInputs(old), { accumulate: i > 0 });
      }
      await optimizer.update();
      model.markParametersChanged();
    };
    const { first, median } = await time(step, Math.max(1, runs - 1));
    return { first, median, completionTokensPerSecond: Math.round((32 * 48) / median), ...(await count(model, step)) };
  });
  await model.close();
}

const embedded = getEmbeddedModelPath();
await attempt("adapter", async () => {
  const model = await CausalLM.open(embedded, { device: options.device as Device });
  const since = performance.now();
  const found = options.device === "webgpu" ? await model.runtime.getGpuReport() : { adapter: options.device };
  await model.close();
  return { adapter: found.adapter, seconds: seconds(since) };
});
if (!options.fast) await attempt("embedded: compared with the CPU", () => compareWithCpu(embedded));
await measureModel("embedded", embedded, 3);
if (!options.small) {
  const random =
    options.model === undefined
      ? await writeRandomModel({ config: SMOLLM2, maxPositions: 2048, scale: 0.04, withTokenizer: false })
      : undefined;
  const path = options.model ?? random!.folder;
  const label = options.model === undefined ? "SmolLM2-135M's shape, random weights" : "the model";
  await measureModel(label, path, 3);
  if (!options.fast) await attempt(`${label}: compared with the CPU`, () => compareWithCpu(path));
  await random?.remove();
}
process.exit(0);
