import { beforeAll, describe, expect, it, vi } from "vitest";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { lowerGraph } from "../../src/engine/gpu/lower-graph.js";
import { exp, input, maximum, mul, neg, reduceSum, sub } from "../../src/engine/graph/index.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { packWords, toWordRange, type WordRange } from "../../src/engine/runtime/webgpu/pack-words.js";
import type { WorkerRequest } from "../../src/engine/runtime/worker-protocol.js";
import { tensor } from "../../src/engine/tensor/tensor.js";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import { TrainingGraph } from "../../src/models/graphs/training-graph.js";
import { writeRandomModel } from "../support/random-model.js";

/** SmolLM2-135M but for its vocabulary. */
const SMOLLM2 = {
  num_hidden_layers: 30,
  hidden_size: 576,
  intermediate_size: 1536,
  num_attention_heads: 9,
  num_key_value_heads: 3,
  rope_theta: 100_000,
};
/** Dispatches of a decoding step that unpack its inputs and draw its tokens. */
const SAMPLING_DISPATCHES = 3;
/**
 * Dispatches of the vocabulary loss of three more chunks of 256 rows, and the sums over parts of a
 * large vocabulary of all four.
 */
const LOSS_DISPATCHES = 13;
const ROWS = 8;
const SAMPLING = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

const createSession = vi.spyOn(Runtime.prototype, "createSession");
const request = vi.spyOn(Runtime.prototype as unknown as { request(request: WorkerRequest): unknown }, "request");

/** Number of steps of the program of the last graph. */
function countSteps(): number {
  return lowerGraph(createSession.mock.calls.at(-1)![0]).steps.length;
}

/** Bytes of the packed inputs of the last run. */
function countInputBytes(): number {
  const requests = request.mock.calls.flatMap(([each]) => (each.kind === "sequence" ? each.requests : [each]));
  const { feeds } = requests.findLast((each) => each.kind === "run")!;
  let start = 0;
  const ranges = feeds.flatMap(([, value]): WordRange[] => {
    if ("buffer" in value) return [];
    const range = toWordRange(value, start);
    start += range.words.length;
    return [range];
  });
  return packWords(ranges).words.byteLength;
}

const drawTokens = (random: RandomStream, count: number) =>
  Array.from({ length: count }, () => 10 + Math.floor(300 * random.random()));

/** Steps and input bytes of a decoding step of 8 rows and of a micro-batch of 1,024 tokens. */
async function measure() {
  const { folder, remove } = await writeRandomModel({ config: SMOLLM2, withTokenizer: false, scale: 0.04 });
  const random = new RandomStream(5);
  const base = await CausalLM.open(folder, { device: "cpu", threads: 1 });
  const valueHead = { kind: "linear", dropout: 0 } as const;
  const model = await getPeftModel(base, { r: 16, loraAlpha: 32, targetModules: "all-linear", valueHead });
  const sampler = await Sampler.create(model);
  const decode = countSteps();
  const prompts = Array.from({ length: ROWS }, (_, row) => drawTokens(random, 10 + 3 * row));
  const requests = prompts.map((prompt) => ({ prompt, maxNewTokens: 3, stopTokens: new Set<number>() }));
  await Promise.all(requests.map((each) => sampler.sample({ ...each, random: () => 0.5, sampling: SAMPLING })));
  const decodeBytes = countInputBytes();
  const training = await TrainingGraph.create(model, ({ logProbs, values, selected }) => {
    const vector = (name: string) => input(name, "float32", [selected]);
    const ratio = exp(sub(logProbs, vector("old_log_probs")));
    const error = sub(values!, vector("returns"));
    const policy = maximum(neg(mul(ratio, vector("advantages"))), neg(vector("advantages")));
    return { loss: reduceSum(mul(policy, mul(error, error))) };
  });
  const train = countSteps();
  const groups = Array.from({ length: 8 }, () => ({ prefix: drawTokens(random, 64), rows: [drawTokens(random, 64)] }));
  const selected = groups.flatMap(({ rows: [tokens] }, group) => tokens.map((_, index) => ({ group, row: 0, index })));
  const drawVector = () =>
    tensor(
      "float32",
      [selected.length],
      Float32Array.from(selected, () => random.normal()),
    );
  const inputs = { old_log_probs: drawVector(), returns: drawVector(), advantages: drawVector() };
  await training.run({ groups, selected }, inputs);
  const trainBytes = countInputBytes();
  await model.close();
  await remove();
  return { decode, train, decodeBytes, trainBytes };
}

describe("SmolLM2-135M with an adapter of rank 16 on all linear layers, on a GPU", () => {
  let measured: Awaited<ReturnType<typeof measure>>;
  beforeAll(async () => {
    measured = await measure();
  }, 120_000);

  it("takes at most 400 dispatches for a decoding step", () => {
    expect(measured.decode + SAMPLING_DISPATCHES).toBeLessThanOrEqual(400);
  });

  it("takes at most 1,500 dispatches for a micro-batch of 1,024 tokens with values", () => {
    expect(measured.train + LOSS_DISPATCHES).toBeLessThanOrEqual(1500);
  });

  it("is sent less than 1 kB for a row of a decoding step and 100 kB for 1,024 trained tokens", () => {
    expect(measured.decodeBytes / ROWS).toBeLessThan(1024);
    expect(measured.trainBytes).toBeLessThan(100_000);
  });
});
