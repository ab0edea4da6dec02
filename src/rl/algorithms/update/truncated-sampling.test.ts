import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { constraintOf } from "../../../../test/support/constrained-sampling.js";
import { writeRandomModel } from "../../../../test/support/random-model.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { input, mul, neg, reduceSum } from "../../../engine/graph/index.js";
import type { SamplingParams } from "../../../engine/runtime/kernels/sampling.js";
import { float32 } from "../../../engine/tensor/tensor.js";
import { Sampler } from "../../../generation/sampling/sampler.js";
import type { SampleRequest } from "../../../generation/sampling/sample-request.js";
import { EnginePolicy } from "../../../generation/engine-policy.js";
import { getPeftModel } from "../../../models/adapters/get-peft-model.js";
import { CausalLM } from "../../../models/causal-lm.js";
import { LogProbScorer } from "./log-prob-scorer.js";
import { PolicyUpdater } from "./policy-updater.js";
import { decisionIndices, type TurnTokens } from "./turn-batch.js";

let files: Awaited<ReturnType<typeof writeRandomModel>>;
let model: CausalLM;
let sampler: Sampler;
let scorer: LogProbScorer;
beforeAll(async () => {
  files = await writeRandomModel({ withTokenizer: false });
  const base = await CausalLM.open(files.folder, { device: "cpu", threads: 1 });
  model = await getPeftModel(base, { r: 2 });
  await writeParameters(initial());
  sampler = await Sampler.create(model);
  scorer = new LogProbScorer(new EnginePolicy(model), { microBatchTokens: 1000 });
});
afterAll(async () => {
  await sampler.release();
  await scorer.release();
  await model.close();
  await files.remove();
});

const initial = () => Float32Array.from({ length: model.parameters.count }, (_, i) => 0.1 * Math.sin(7 * i));

async function writeParameters(values: Float32Array): Promise<void> {
  await model.runtime.write(model.parameters.values, values);
  model.markParametersChanged();
}

const PLAIN: SamplingParams = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
const prompt = [1, 2, 3, 5, 8, 13];

async function sampleTurns(params: Partial<SamplingParams>, options: Partial<SampleRequest> = {}) {
  const outputs = await Promise.all(
    [1, 2, 3, 4, 5].map(async (seed) => {
      const random = new RandomStream(seed);
      const sampling = { ...PLAIN, ...params };
      const basics = { prompt: [...prompt, seed % 3], maxNewTokens: 6, stopTokens: new Set<number>() };
      const request = { ...basics, sampling, random: () => random.random(), recordsKeptTokens: true, ...options };
      return { request, output: await sampler.sample(request) };
    }),
  );
  return outputs.map(({ request, output: { tokens, logProbs, allowedTokens } }) => ({
    turn: { prompt: request.prompt, tokens, allowedTokens, hasKeptTokens: true },
    logProbs,
  }));
}

const choices = constraintOf(({ length }) => (length < 5 ? Array.from({ length: 30 }, (_, i) => 3 * i + length) : []));

describe("truncated sampling", () => {
  it.each<[string, Partial<SamplingParams>, Partial<SampleRequest>]>([
    ["top-k", { topK: 5 }, {}],
    ["a top-k of one", { topK: 1 }, {}],
    ["top-p", { topP: 0.7 }, {}],
    ["min-p", { minP: 0.1 }, {}],
    ["all three at temperature 0.6", { topK: 40, topP: 0.9, minP: 0.02, temperature: 0.6 }, {}],
    ["filters that keep everything", { topK: 320, topP: 0.999_999, temperature: 2 }, {}],
    ["a constraint and top-p", { topP: 0.5 }, { constraint: choices }],
    [
      "a constraint, top-k and the logits of allowed tokens",
      { topK: 3 },
      { constraint: choices, skipRawLogProbs: true },
    ],
  ])("is scored as it was sampled, with %s", async (_, params, options) => {
    const turns = await sampleTurns(params, options);
    const { logProbs } = await scorer.score(
      turns.map(({ turn }) => turn),
      { temperature: params.temperature ?? 1 },
    );
    turns.forEach(({ turn, logProbs: recorded }, i) => {
      expect(turn.allowedTokens).toHaveLength(turn.tokens.length);
      turn.tokens.forEach((token, k) => expect(turn.allowedTokens![k]).toContain(token));
      const decisions = decisionIndices(turn);
      expect(logProbs[i]).toHaveLength(decisions.length);
      decisions.forEach((index, k) => expect(logProbs[i][k]).toBeCloseTo(recorded[index], 4));
    });
    const isNarrow = turns.some(({ turn }) => turn.allowedTokens!.some(({ length }) => length < 100));
    expect(isNarrow).toBe(params.topK !== 320);
  });

  it("has an unbiased gradient among the kept tokens, and a biased one among all", async () => {
    const [{ turn }] = await sampleTurns({ topP: 0.8 }, { maxNewTokens: 1 });
    const kept = turn.allowedTokens![0];
    expect(kept.length).toBeGreaterThan(3);
    const reward = (i: number) => 2 + 3 * Math.sin(5 * i);
    const turnsOf = (allowedTokens: Int32Array[] | undefined): TurnTokens[] =>
      [...kept].map((token) => ({ prompt: turn.prompt, tokens: [token], allowedTokens, hasKeptTokens: true }));
    const amongKept = turnsOf([kept]);
    /** The expected reward of one token, sampled from those that top-p keeps. */
    const expectedReward = async () => {
      const { logProbs } = await scorer.score(amongKept);
      return logProbs.reduce((sum, [logProb], i) => sum + Math.exp(logProb) * reward(i), 0);
    };
    const probabilities = (await scorer.score(amongKept)).logProbs.map(([logProb]) => Math.exp(logProb));
    expect(probabilities.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 5);

    const parameters = initial();
    const direction = parameters.map((_, i) => Math.cos(3 * i));
    const at = async (step: number) => {
      await writeParameters(parameters.map((value, i) => value + step * direction[i]));
      return expectedReward();
    };
    const slope = ((await at(1e-3)) - (await at(-1e-3))) / 2e-3;
    await writeParameters(parameters);

    /**
     * The mean of the estimate R d log p(token), along the direction: each token counts with its
     * probability.
     */
    const estimate = async (turns: readonly TurnTokens[]) => {
      const updater = new PolicyUpdater(new EnginePolicy(model), {
        loss: ({ logProbs, selected }) => ({
          loss: neg(reduceSum(mul(input("weights", "float32", [selected]), logProbs))),
        }),
        entropy: "none",
        optimizer: { learningRate: 1 },
        microBatchTokens: 1000,
      });
      const inputs = (indices: readonly number[]) => ({
        weights: float32(indices.map((i) => probabilities[i] * reward(i))),
      });
      await updater.gradients.compute(turns, inputs, { temperature: 1, random: new RandomStream(1) });
      const { data } = await model.runtime.read(model.parameters.gradients);
      await updater.release();
      return (data as Float32Array).reduce((sum, value, i) => sum - value * direction[i], 0);
    };
    const [unbiased, biased] = [await estimate(amongKept), await estimate(turnsOf(undefined))];
    expect(Math.abs(slope)).toBeGreaterThan(0.1);
    expect(unbiased / slope).toBeCloseTo(1, 2);
    expect(Math.abs(biased / slope - 1)).toBeGreaterThan(0.2);
  });
});
