import { RandomStream } from "../../core/random/random-stream.js";
import { exp, input, mul, neg, reduceSum, sub } from "../../engine/graph/index.js";
import { tensor } from "../../engine/tensor/index.js";
import type { SampleOutput, Sampler } from "../../generation/index.js";
import { getPeftModel } from "../../models/adapters/index.js";
import { type SelectedToken, type TokenBatch, TrainingGraph } from "../../models/graphs/index.js";
import type { CausalLM } from "../../models/index.js";

/** Adds an adapter of rank 16 on all linear layers, whose values are not zero. */
export async function addAdapter(base: CausalLM): Promise<CausalLM> {
  const model = await getPeftModel(base, { r: 16, loraAlpha: 32, targetModules: "all-linear" });
  const { data } = await model.runtime.read(model.parameters.values);
  const random = new RandomStream(9);
  await model.runtime.write(
    model.parameters.values,
    (data as Float32Array).map((value) => value + 0.005 * random.normal()),
  );
  return model;
}

/** Draws tokens of a vocabulary. */
export function drawTokens(random: RandomStream, count: number, vocabulary: number): number[] {
  return Array.from({ length: count }, () => 10 + Math.floor(random.random() * Math.min(1000, vocabulary - 20)));
}

/** Draws groups of rows that share a prefix; every token of a row is trained. */
export function drawBatch(
  vocabulary: number,
  groups: number,
  prefix: number,
  rows: number,
  length: number,
): TokenBatch {
  const random = new RandomStream(5);
  const drawn = Array.from({ length: groups }, () => ({
    prefix: drawTokens(random, prefix, vocabulary),
    rows: Array.from({ length: rows }, () => drawTokens(random, length, vocabulary)),
  }));
  const selected = drawn.flatMap((each, group): SelectedToken[] =>
    each.rows.flatMap((tokens, row) => tokens.map((_, index) => ({ group, row, index }))),
  );
  return { groups: drawn, selected };
}

/** Policy loss with the ratio to sampled log-probabilities, as of GRPO on its first step. */
export async function createTraining(model: CausalLM): Promise<TrainingGraph> {
  return TrainingGraph.create(model, ({ logProbs, selected }) => {
    const ratio = exp(sub(logProbs, input("old_log_probs", "float32", [selected])));
    return { loss: neg(reduceSum(mul(ratio, input("advantages", "float32", [selected])))) };
  });
}

/** Returns sampled log-probabilities and random advantages. */
export function lossInputs(logProbs: Float32Array) {
  const random = new RandomStream(8);
  const advantages = logProbs.map(() => random.normal() / logProbs.length);
  return {
    old_log_probs: tensor("float32", [logProbs.length], logProbs),
    advantages: tensor("float32", [logProbs.length], advantages),
  };
}

/** Samples completions of prompts that begin alike. */
export async function sample(
  model: CausalLM,
  sampler: Sampler,
  rows: number,
  newTokens: number,
): Promise<readonly SampleOutput[]> {
  const random = new RandomStream(3);
  const prefix = drawTokens(random, 24, model.config.vocabSize);
  const requests = Array.from({ length: rows }, (_, row) => {
    const stream = new RandomStream(row);
    return sampler.sample({
      prompt: [...prefix, ...drawTokens(random, 8, model.config.vocabSize)],
      maxNewTokens: newTokens,
      stopTokens: new Set<number>(),
      random: () => stream.random(),
      sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    });
  });
  return Promise.all(requests);
}

const seconds = (since: number) => Number(((performance.now() - since) / 1000).toFixed(4));

/** Runs work until it is warm, then `runs` times; returns the median in seconds. */
export async function time(work: () => Promise<unknown>, runs: number): Promise<{ first: number; median: number }> {
  const before = performance.now();
  await work();
  const first = seconds(before);
  await work();
  const times: number[] = [];
  for (let i = 0; i < runs; i++) {
    const since = performance.now();
    await work();
    times.push((performance.now() - since) / 1000);
  }
  times.sort((a, b) => a - b);
  return { first, median: times[times.length >> 1] };
}

const report = async (model: CausalLM) =>
  model.runtime.device === "webgpu" ? (await model.runtime.getGpuReport()).counters : undefined;

/** Counters of one call of `work`. */
export async function count(model: CausalLM, work: () => Promise<unknown>): Promise<object> {
  const before = await report(model);
  await work();
  const after = await report(model);
  if (before === undefined || after === undefined) return {};
  const { dispatches, bytesUp, bytesDown, submissions } = after;
  return {
    dispatches: dispatches - before.dispatches,
    bytesUp: bytesUp - before.bytesUp,
    bytesDown: bytesDown - before.bytesDown,
    submissions: submissions - before.submissions,
    pipelines: after.pipelines,
    peakMegabytes: Math.round(after.peakBufferBytes / 1e6),
  };
}
