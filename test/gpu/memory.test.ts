import { beforeAll, describe, expect, it, vi } from "vitest";
import { createTraining, drawBatch, lossInputs } from "../../src/app/cli/device-workload.js";
import { lowerGraph } from "../../src/engine/gpu/lower-graph.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { Session } from "../../src/engine/runtime/session.js";
import { layOutArena } from "../../src/engine/runtime/webgpu/arena.js";
import { DimValues } from "../../src/engine/runtime/webgpu/dim-values.js";
import { findLifetimes } from "../../src/engine/runtime/webgpu/plan-builder.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { parseModelConfig } from "../../src/models/architectures/index.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import { countParameters, estimateModelMemory } from "../../src/models/weights/estimate-model-memory.js";
import { writeRandomModel } from "../support/random-model.js";

/** SmolLM2-135M but for its vocabulary and the number of its layers. */
const SMOLLM2 = {
  model_type: "llama",
  tie_word_embeddings: true,
  hidden_size: 576,
  intermediate_size: 1536,
  num_attention_heads: 9,
  num_key_value_heads: 3,
  max_position_embeddings: 2048,
};
const [LAYERS, VOCABULARY, TOKENS, RANK] = [30, 49_152, 1024, 16];
const BYTES_PER_VALUE = 4;
/** By how much the arena is larger than what a run needs. */
const ARENA_GROWTH = 1.1;
/** Logits of 256 rows. */
const LOGIT_BYTES = BYTES_PER_VALUE * 256 * VOCABULARY;

const createSession = vi.spyOn(Runtime.prototype, "createSession");
const request = vi.spyOn(Session.prototype, "request");

/** Bytes of temporary values of a LoRA step of 1,024 tokens, and values of its adapter. */
async function measure(layers: number) {
  const config = { ...SMOLLM2, num_hidden_layers: layers };
  const { folder, remove } = await writeRandomModel({ config, withTokenizer: false, scale: 0.04 });
  const base = await CausalLM.open(folder, { device: "cpu", threads: 1 });
  const model = await getPeftModel(base, { r: RANK, loraAlpha: 32, targetModules: "all-linear" });
  const training = await createTraining(model);
  const program = lowerGraph(createSession.mock.calls.at(-1)![0]);
  const batch = drawBatch(model.config.vocabSize, 8, 64, 1, 64);
  await training.run(batch, lossInputs(new Float32Array(batch.selected.length).fill(-5)));
  const run = request.mock.results.at(-1)!.value as ReturnType<Session["request"]>;
  const feeds = new Map(run.feeds);
  const sizes = new Map(program.sizes.map(({ name, input, axis }) => [name, feeds.get(input)!.shape[axis]]));
  const lifetimes = findLifetimes(program, new DimValues(program.dims, sizes), () => true);
  // Gradients are computed in the adapter's buffer.
  const inPlace = new Set(program.outputs.map(({ value }) => value));
  const temporary = lifetimes.filter(
    (lifetime, i) => lifetime !== undefined && program.values[i].source.kind === "temporary" && !inPlace.has(i),
  );
  const { slabs } = layOutArena(
    temporary.map((each) => each!),
    2 ** 31,
  );
  const adapterValues = model.parameters.count;
  await model.close();
  await remove();
  return { arena: BYTES_PER_VALUE * slabs.reduce((a, b) => a + b, 0), adapterValues };
}

describe("peak memory of a GPU, a LoRA step of 1,024 tokens of SmolLM2-135M", () => {
  let [one, two]: Awaited<ReturnType<typeof measure>>[] = [];
  beforeAll(async () => {
    one = await measure(1);
    two = await measure(2);
  });
  const network = parseModelConfig({ ...SMOLLM2, num_hidden_layers: LAYERS, vocab_size: VOCABULARY }, "config.json");

  /** Weights, adapter with gradient and two moments, arena of all layers, logits. */
  function allocated() {
    const all = (name: "arena" | "adapterValues") => one[name] + (LAYERS - 1) * (two[name] - one[name]);
    const arena = ARENA_GROWTH * (all("arena") + LOGIT_BYTES);
    const states = 4 * BYTES_PER_VALUE * all("adapterValues");
    return { total: BYTES_PER_VALUE * countParameters(network) + states + arena, states };
  }

  it("is at most 1.5 times the arithmetic minimum", () => {
    const { hidden_size: width, intermediate_size: inner } = SMOLLM2;
    const keysAndValues = (2 * width * SMOLLM2.num_key_value_heads) / SMOLLM2.num_attention_heads;
    // What gradients read of a token in a layer: inputs of both norms and their results, queries
    // and attention's result, keys and values, gate, up and their product, and results of seven A.
    const kept = 6 * width + keysAndValues + 3 * inner + 7 * RANK;
    const { total, states } = allocated();
    const activations = BYTES_PER_VALUE * TOKENS * LAYERS * kept;
    const minimum = BYTES_PER_VALUE * countParameters(network) + states + activations + LOGIT_BYTES;
    expect(total / minimum).toBeLessThan(1.5);
    expect(total / minimum).toBeGreaterThan(1);
  });

  it("is what is estimated, within 10 %", () => {
    const usage = { use: "train", device: "webgpu", r: RANK, microBatchTokens: TOKENS } as const;
    expect(Math.abs(estimateModelMemory(network, usage) / allocated().total - 1)).toBeLessThan(0.1);
  });
});
