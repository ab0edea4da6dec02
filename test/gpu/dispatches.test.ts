import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { lowerGraph } from "../../src/engine/gpu/lower-graph.js";
import { exp, input, maximum, mul, neg, reduceSum, sub } from "../../src/engine/graph/index.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import { TrainingGraph } from "../../src/models/graphs/training-graph.js";
import { writeRandomModel } from "../support/random-model.js";

/** SmolLM2-135M but for its vocabulary and the number of its layers. */
const SMOLLM2 = {
  hidden_size: 576,
  intermediate_size: 1536,
  num_attention_heads: 9,
  num_key_value_heads: 3,
  rope_theta: 100_000,
};
const LAYERS = 30;
/** Dispatches of a decoding step that unpack its inputs and draw its tokens. */
const SAMPLING_DISPATCHES = 3;
/** Chunks of 256 rows of the vocabulary loss, of three dispatches each, beyond the first. */
const LOSS_CHUNKS = 3;

/** Numbers of steps of the programs of a decoding step and of a micro-batch. */
async function countSteps(layers: number): Promise<{ decode: number; train: number }> {
  const { folder, remove } = await writeRandomModel({
    config: { ...SMOLLM2, num_hidden_layers: layers },
    withTokenizer: false,
    scale: 0.04,
  });
  let steps = 0;
  const original = Runtime.prototype.createSession;
  const spy = vi.spyOn(Runtime.prototype, "createSession").mockImplementation(function (this: Runtime, graph, options) {
    steps = lowerGraph(graph).steps.length;
    return original.call(this, graph, options);
  });
  try {
    const base = await CausalLM.open(folder, { device: "cpu", threads: 1 });
    const valueHead = { kind: "linear", dropout: 0 } as const;
    const model = await getPeftModel(base, { r: 16, loraAlpha: 32, targetModules: "all-linear", valueHead });
    await Sampler.create(model);
    const decode = steps;
    await TrainingGraph.create(model, ({ logProbs, values, selected }) => {
      const vector = (name: string) => input(name, "float32", [selected]);
      const ratio = exp(sub(logProbs, vector("old_log_probs")));
      const error = sub(values!, vector("returns"));
      const policy = maximum(neg(mul(ratio, vector("advantages"))), neg(vector("advantages")));
      return { loss: reduceSum(mul(policy, mul(error, error))) };
    });
    await model.close();
    return { decode, train: steps };
  } finally {
    spy.mockRestore();
    await remove();
  }
}

describe("dispatches of SmolLM2-135M with an adapter of rank 16 on all linear layers", () => {
  let counts: Awaited<ReturnType<typeof countSteps>>[] = [];
  beforeAll(async () => {
    counts = [await countSteps(2), await countSteps(3)];
  });
  afterAll(() => vi.restoreAllMocks());

  /** Steps of all layers: further ones have as many as the third. */
  const total = (name: "decode" | "train") => counts[0][name] + (LAYERS - 2) * (counts[1][name] - counts[0][name]);

  it("are at most 400 for a decoding step", () => {
    expect(total("decode") + SAMPLING_DISPATCHES).toBeLessThanOrEqual(400);
  });

  it("are at most 1,500 for a micro-batch of 1,024 trained tokens", () => {
    expect(total("train") + 3 * LOSS_CHUNKS).toBeLessThanOrEqual(1500);
  });
});
