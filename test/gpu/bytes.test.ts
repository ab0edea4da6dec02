import { describe, expect, it } from "vitest";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { neg, reduceSum } from "../../src/engine/graph/index.js";
import { Optimizer } from "../../src/engine/optim/optimizer.js";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import { TrainingGraph } from "../../src/models/graphs/training-graph.js";
import { whyNoGpu } from "../support/gpu.js";
import { writeRandomModel } from "../support/random-model.js";

const reason = await whyNoGpu();
const SAMPLING = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

/** Attention of SmolLM2-135M between few other weights. */
const NARROW = {
  num_hidden_layers: 1,
  hidden_size: 64,
  intermediate_size: 32,
  num_attention_heads: 9,
  num_key_value_heads: 3,
  head_dim: 64,
};

const drawTokens = (random: RandomStream, count: number) =>
  Array.from({ length: count }, () => 10 + Math.floor(300 * random.random()));

/** Bytes that cross for a decoding step of 8 rows and for a LoRA step of 1,024 tokens. */
async function countBytes(): Promise<{ decode: number; update: number }> {
  const { folder, remove } = await writeRandomModel({ config: NARROW, withTokenizer: false });
  const base = await CausalLM.open(folder, { device: "webgpu" });
  const model = await getPeftModel(base, { r: 16, targetModules: "all-linear" });
  const count = async (work: () => Promise<unknown>) => {
    const before = (await model.runtime.getGpuReport()).counters;
    await work();
    const after = (await model.runtime.getGpuReport()).counters;
    return after.bytesUp + after.bytesDown - before.bytesUp - before.bytesDown;
  };
  const random = new RandomStream(5);
  const sampler = await Sampler.create(model);
  const prompts = Array.from({ length: 8 }, (_, row) => drawTokens(random, 10 + row));
  const generate = (maxNewTokens: number) => () =>
    Promise.all(
      prompts.map((prompt) =>
        sampler.sample({ prompt, maxNewTokens, stopTokens: new Set(), random: () => 0.5, sampling: SAMPLING }),
      ),
    );
  await generate(12)();
  const few = await count(generate(4));
  const many = await count(generate(12));
  const groups = Array.from({ length: 8 }, () => ({
    prefix: drawTokens(random, 64),
    rows: [drawTokens(random, 64)],
  }));
  const selected = groups.flatMap(({ rows: [tokens] }, group) => tokens.map((_, index) => ({ group, row: 0, index })));
  const graph = await TrainingGraph.create(model, (policy) => ({ loss: neg(reduceSum(policy.logProbs)) }));
  const optimizer = new Optimizer(model.parameters, { learningRate: 1e-4 });
  const step = async () => {
    await graph.run({ groups, selected }, {});
    await optimizer.update();
  };
  await step();
  const update = await count(step);
  await model.close();
  await remove();
  return { decode: (many - few) / 8, update };
}

describe.skipIf(reason !== undefined)(`bytes that cross to a GPU${reason === undefined ? "" : ` (${reason})`}`, () => {
  it("are under 1 kB for a row of a decoding step and under 100 kB for 1,024 trained tokens", async () => {
    const { decode, update } = await countBytes();
    expect(decode / 8).toBeLessThan(1024);
    expect(update).toBeLessThan(100_000);
  }, 600_000);
});
