import { parseArgs } from "node:util";
import { DecodeSession } from "../../src/generation/cache/decode-session.js";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { compile, input, matmul, mul, neg, reduceSum, dim, weight } from "../../src/engine/graph/index.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import { TrainingGraph, type GraphOptions } from "../../src/models/graphs/training-graph.js";
import type { TokenBatch } from "../../src/models/graphs/token-batch.js";
import { Optimizer } from "../../src/engine/optim/index.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { float32 } from "../../src/engine/tensor/tensor.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { benchTokenIds, type EngineWork } from "../engine-work.js";
import type { Request, Result } from "../framework.js";
import { serve, timeRuns } from "../serve.js";

type Work<Name extends EngineWork["work"]> = Extract<EngineWork, { work: Name }> & { repeat: number };

const { values } = parseArgs({
  options: { model: { type: "string" }, gguf: { type: "string" }, threads: { type: "string", default: "2" } },
});
const threads = Number(values.threads);

/** This project's side of `npm run bench -- engine`. */
class EngineBench {
  /** By the bits of their weights. */
  private readonly models = new Map<number, Promise<CausalLM>>();
  private readonly optimizers = new Map<CausalLM, Optimizer>();
  private readonly graphs = new Map<string, Promise<TrainingGraph>>();
  private readonly samplers = new Map<number, Promise<Sampler>>();

  async handle(request: Request & EngineWork): Promise<Result> {
    switch (request.work) {
      case "train":
        return this.train(request);
      case "prefill":
        return this.prefill(request);
      case "decode":
        return this.decode(request);
      case "start":
        return this.start(request);
      case "sgemm":
        return this.sgemm(request);
    }
  }

  /** Opens the model with an adapter on frozen weights of so many bits. */
  private model(quantize?: 8 | 4): Promise<CausalLM> {
    const bits = quantize ?? 32;
    const open = async () =>
      getPeftModel(await CausalLM.open(values.model!, { device: "cpu", threads, quantize }), { r: 16, loraAlpha: 32 });
    const model = this.models.get(bits) ?? open();
    this.models.set(bits, model);
    return model;
  }

  private sampler(quantize?: 8 | 4): Promise<Sampler> {
    const bits = quantize ?? 32;
    const sampler = this.samplers.get(bits) ?? this.model(quantize).then((model) => Sampler.create(model));
    this.samplers.set(bits, sampler);
    return sampler;
  }

  private graph(model: CausalLM, options: GraphOptions): Promise<TrainingGraph> {
    const key = JSON.stringify([options, model.weights.bits]);
    const cached = this.graphs.get(key);
    if (cached !== undefined) return cached;
    const graph = TrainingGraph.create(
      model,
      ({ logProbs, selected }) => ({ loss: neg(reduceSum(mul(logProbs, input("weights", "float32", [selected])))) }),
      options,
    );
    this.graphs.set(key, graph);
    return graph;
  }

  private async train({
    rows,
    tokens,
    shared,
    last,
    backward: backwardPrecision,
    quantize,
    repeat,
  }: Work<"train">): Promise<Result> {
    const model = await this.model(quantize);
    const graph = await this.graph(model, { withPrefix: shared > 0, backwardPrecision });
    const optimizer = this.optimizers.get(model) ?? new Optimizer(model.parameters, { learningRate: 1e-4 });
    this.optimizers.set(model, optimizer);
    const batch = trainingBatch(benchTokenIds(rows, tokens + 1, shared, model.config.vocabSize), shared, last);
    const weights = float32(batch.selected.map(() => 1 / batch.selected.length));
    const seconds = await timeRuns(repeat, async () => {
      await graph.run(batch, { weights });
      await optimizer.update();
      model.markParametersChanged();
    });
    if (backwardPrecision === undefined) return { seconds, count: rows * tokens };
    const exactGraph = await this.graph(model, { withPrefix: shared > 0 });
    const gradients: Float32Array[] = [];
    for (const each of [graph, exactGraph]) {
      await each.run(batch, { weights });
      gradients.push((await model.runtime.read(model.parameters.gradients)).data as Float32Array);
    }
    return { seconds, count: rows * tokens, values: { gradient_cosine: cosine(gradients[0], gradients[1]) } };
  }

  private async prefill({ rows, tokens, repeat }: Work<"prefill">): Promise<Result> {
    const model = await this.model();
    const cached = await DecodeSession.create(model);
    const ids = benchTokenIds(rows, tokens, 0, model.config.vocabSize);
    const seconds = await timeRuns(repeat, async () => {
      const { requests } = cached.prepare({
        rows: ids.map((row, cacheRow) => ({ tokens: row, cacheRow, cachedLength: 0, sequenceLength: tokens })),
        prefixCache: undefined,
        prefixLength: 0,
        cache: undefined,
        selectedTokens: ids.map((_, row) => (row + 1) * tokens - 1),
        inverseTemperatures: ids.map(() => 1),
        adapter: true,
        model,
      });
      await model.runtime.sequence(requests);
    });
    await cached.release();
    return { seconds, count: rows * tokens };
  }

  private async decode({
    rows,
    prompt,
    new_tokens: maxNewTokens,
    temperature,
    top_p: topP,
    quantize,
    repeat,
  }: Work<"decode">): Promise<Result> {
    const sampler = await this.sampler(quantize);
    const sampling = { temperature, topP, topK: 0, minP: 0, repetitionPenalty: 1 };
    const sample = (row: number, count: number) => {
      const random = new RandomStream(row);
      return sampler.sample({
        prompt,
        sampling,
        maxNewTokens: count,
        random: () => random.random(),
        stopTokens: new Set(),
      });
    };
    const batch = (count: number) => Promise.all(Array.from({ length: rows }, (_, row) => sample(row, count)));
    // The prompt's keys and values stand before the clock starts, as they do for the peer.
    await batch(1);
    const seconds = await timeRuns(repeat, async () => {
      await batch(maxNewTokens);
    });
    return { seconds, count: rows * maxNewTokens };
  }

  private async start({ prompt, source, repeat }: Work<"start">): Promise<Result> {
    const seconds = await timeRuns(repeat, async () => {
      const model = await CausalLM.open(source === "folder" ? values.model! : values.gguf!, { device: "cpu", threads });
      const sampler = await Sampler.create(model);
      const sampling = { temperature: 0, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1 };
      await sampler.sample({ prompt, sampling, maxNewTokens: 1, random: () => 0, stopTokens: new Set() });
      await model.close();
    });
    return { seconds, count: 1 };
  }

  private async sgemm({ shapes, repeat }: Work<"sgemm">): Promise<Result> {
    const runtime = new Runtime({ device: "cpu", threads });
    let best = { seconds: Infinity, count: 1 };
    for (const [rows, inner, columns] of shapes) {
      const x = input("x", "float32", [dim("rows"), inner]);
      const graph = compile({ y: matmul(x, weight("w", "float32", [columns, inner]), { transposeB: true }) });
      const data = new Uint8Array(4 * columns * inner);
      const session = await runtime.createSession(graph, {
        locate: () => ({ file: "w", offset: 0, byteLength: data.length }),
        buffers: [{ name: "w", data }],
      });
      const feeds = { x: runtime.allocate("float32", [rows, inner]) };
      const fetches = { y: runtime.allocate("float32", [rows, columns]) };
      for (const seconds of await timeRuns(10 * repeat, async () => void (await session.run(feeds, { fetches })))) {
        const count = 2 * rows * inner * columns;
        if (count / seconds > best.count / best.seconds) best = { seconds, count };
      }
      await session.release();
    }
    await runtime.close();
    return { seconds: [best.seconds], count: best.count };
  }
}

function cosine(a: Float32Array, b: Float32Array): number {
  let [product, left, right] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    product += a[i] * b[i];
    left += a[i] * a[i];
    right += b[i] * b[i];
  }
  return product / Math.sqrt(left * right);
}

/** Rows behind a common prefix; the loss is at the last `last` positions, all for 0. */
function trainingBatch(ids: readonly number[][], shared: number, last: number): TokenBatch {
  const own = ids.map((row) => row.slice(shared));
  const positions = ids[0].length - 1;
  const count = last === 0 ? positions : last;
  const groups =
    shared > 0 ? [{ prefix: ids[0].slice(0, shared), rows: own }] : own.map((row) => ({ prefix: [], rows: [row] }));
  const selected = own.flatMap((row, i) =>
    Array.from({ length: count }, (_, k) => ({
      group: shared > 0 ? 0 : i,
      row: shared > 0 ? i : 0,
      index: row.length - count + k,
    })),
  );
  return { groups, selected };
}

const engineBench = new EngineBench();
await serve((request) => engineBench.handle(request as Request & EngineWork));
process.exit(0);
