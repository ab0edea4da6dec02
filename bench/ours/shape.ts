import { parseArgs } from "node:util";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { neg, reduceSum } from "../../src/engine/graph/index.js";
import { Optimizer } from "../../src/engine/optim/index.js";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { mergeAdapter } from "../../src/models/adapters/merge-adapter.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import type { LoraConfig } from "../../src/models/files/index.js";
import { FrozenStates } from "../../src/models/graphs/frozen-states.js";
import { TrainingGraph } from "../../src/models/graphs/training-graph.js";
import { estimateModelMemory, type WeightBits } from "../../src/models/weights/estimate-model-memory.js";
import { saveModel } from "../../src/models/save-model.js";

/** One kind of work with one model, for bench:shapes; prints a line after each phase. */
const { values } = parseArgs({
  options: {
    model: { type: "string", default: "" },
    bits: { type: "string", default: "32" },
    work: { type: "string", default: "sample" },
    layers: { type: "string", default: "all" },
    rows: { type: "string", default: "8" },
    tokens: { type: "string", default: "100" },
    threads: { type: "string", default: "2" },
    output: { type: "string", default: "" },
    checkpointing: { type: "string", default: "auto" },
  },
});

const PROMPT_TOKENS = 32;
const NEW_TOKENS = 16;

const bits = Number(values.bits) as WeightBits;
const start = performance.now();

function report(phase: string, fields: object = {}): void {
  const { user, system } = process.cpuUsage();
  const seconds = (ms: number) => Number((ms / 1000).toFixed(2));
  const cpu = seconds((user + system) / 1000);
  console.log(JSON.stringify({ phase, wall: seconds(performance.now() - start), cpu, ...fields }));
}

const random = new RandomStream(3);
const drawTokens = (count: number) => Array.from({ length: count }, () => 10 + Math.floor(random.random() * 290));

const base = await CausalLM.open(values.model, {
  device: "cpu",
  threads: Number(values.threads),
  quantize: bits === 32 ? undefined : bits,
  gradientCheckpointing: values.checkpointing === "auto" ? undefined : values.checkpointing === "true",
});
const layerCount = base.config.layers.length;
const lora: Partial<LoraConfig> & { layersToTransform?: number[] } = {
  r: 16,
  loraAlpha: 32,
  ...(values.layers === "all"
    ? {}
    : { layersToTransform: Array.from({ length: Number(values.layers) }, (_, i) => layerCount - 1 - i) }),
};
report("open");

async function sample(model: CausalLM, rows: number, frozenStates?: FrozenStates): Promise<void> {
  const sampler = await Sampler.create(model, { frozenStates });
  const prompt = drawTokens(PROMPT_TOKENS);
  const sampling = { temperature: 1, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1 };
  const draw = (row: number, maxNewTokens: number) => {
    const stream = new RandomStream(row);
    return sampler.sample({ prompt, sampling, maxNewTokens, random: () => stream.random(), stopTokens: new Set() });
  };
  await draw(0, 1);
  report("first token", { predicted: Number((estimateModelMemory(model.config, { bits }) / 1e9).toFixed(3)) });
  const since = process.cpuUsage();
  await Promise.all(Array.from({ length: rows }, (_, row) => draw(row, NEW_TOKENS)));
  const { user, system } = process.cpuUsage(since);
  report("sample", { tokensPerCpuSecond: Math.round((1e6 * rows * NEW_TOKENS) / (user + system)) });
}

async function train(): Promise<void> {
  const [rows, tokens] = [Number(values.rows), Number(values.tokens)];
  const model = await getPeftModel(base, lora);
  const frozenStates = FrozenStates.create(model);
  await frozenStates?.open();
  await sample(model, rows, frozenStates);
  const graph = await TrainingGraph.create(model, ({ logProbs }) => ({ loss: neg(reduceSum(logProbs)) }), {
    withPrefix: false,
    frozenStates,
  });
  report("training graph");
  const optimizer = new Optimizer(model.parameters, { learningRate: 1e-6 });
  const { microBatchTokens, gradientCheckpointing } = model;
  const rowsPerBatch = Math.max(1, Math.floor(microBatchTokens / tokens));
  for (let step = 0; step < 2; step++) {
    for (let row = 0; row < rows; row += rowsPerBatch) {
      const groups = Array.from({ length: Math.min(rowsPerBatch, rows - row) }, () => ({
        prefix: [],
        rows: [drawTokens(tokens)],
      }));
      const selected = groups.flatMap((_, group) =>
        Array.from({ length: tokens - 1 }, (__, i) => ({ group, row: 0, index: i + 1 })),
      );
      await graph.run({ groups, selected }, {}, { accumulate: row > 0 });
    }
    await optimizer.update();
  }
  const predicted = estimateModelMemory(model.config, {
    bits,
    use: "train",
    microBatchTokens: tokens * Math.min(rows, rowsPerBatch),
    layersToTransform: lora.layersToTransform,
    gradientCheckpointing,
  });
  report("step", { predicted: Number((predicted / 1e9).toFixed(3)), microBatchTokens, gradientCheckpointing });
}

async function merge(): Promise<void> {
  const merged = await mergeAdapter(await getPeftModel(base, lora));
  report("merged");
  await saveModel(merged, values.output, { dtype: "BF16" });
  report("saved");
}

if (values.work === "sample") await sample(base, 1);
if (values.work === "train") await train();
if (values.work === "merge") await merge();
await base.close();
process.exit(0);
