import { afterAll, describe, expect, it, vi } from "vitest";
import { setTrainedValues, TrainableModels } from "../../../test/support/trainable.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { CompletionSampler } from "./completion-sampler.js";
import type { CompletionSettings } from "./rollout-settings.js";

const models = new TrainableModels();
afterAll(() => models.close());

const settings: CompletionSettings = {
  sampling: { temperature: 0.5, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
  trainedDistribution: "full",
  maxNewTokens: 4,
  stop: [],
  actionScoring: undefined,
  ignoreEos: false,
};
const prompts = [1, 2, 3, 4].map((last) => [5, 6, 7, last]);

describe("CompletionSampler", () => {
  it.each([
    ["a small vocabulary", 320],
    ["a large vocabulary", 5000],
  ])("samples recurring prompts from cached distributions with the same result, with %s", async (_, vocabSize) => {
    const model = await models.open({ config: { vocab_size: vocabSize }, scale: 1.5 });
    const sampler = new CompletionSampler(model, settings);
    const sampleAll = (from: CompletionSampler) =>
      Promise.all(prompts.map((prompt, i) => from.sample({ prompt, random: new RandomStream(i) })));
    const run = vi.spyOn(model.causalLM.runtime, "sequence");
    // Of a large vocabulary, distributions are cached from the third time on.
    const [first, second, third] = [await sampleAll(sampler), await sampleAll(sampler), await sampleAll(sampler)];
    const count = run.mock.calls.length;
    const fourth = await sampleAll(sampler);
    expect(run.mock.calls.length).toBe(count);
    expect(count).toBeGreaterThan(0);
    // Log-probabilities of prompts whose beginning is in the key-value cache may differ in the last
    // bits.
    for (const completions of [second, third, fourth])
      completions.forEach(({ tokens, logProbs }, i) => {
        expect(tokens).toEqual(first[i].tokens);
        logProbs.forEach((logProb, t) => expect(logProb).toBeCloseTo(first[i].logProbs[t], 5));
      });
    expect(fourth.map(({ logProbs }) => logProbs)).toEqual(third.map(({ logProbs }) => logProbs));
    await setTrainedValues(model, (i) => Math.sin(i));
    const [changed, expected] = [await sampleAll(sampler), await sampleAll(new CompletionSampler(model, settings))];
    expect(changed.map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
    expect(changed.map(({ logProbs }) => logProbs)).not.toEqual(first.map(({ logProbs }) => logProbs));
  });

  const choices = { choices: ["a", "b"] };
  it.each([
    ["sampled", {}, undefined],
    ["greedy", { sampling: { ...settings.sampling, temperature: 0 } }, undefined],
    ["scored", { scoring: "token" as const }, choices],
  ])(
    "computes %s completions again after clearCaches and after isolated work, and only then",
    async (_, more, constraint) => {
      const model = await models.open({ config: { vocab_size: 320 }, scale: 1.5 });
      const sampler = new CompletionSampler(model, { ...settings, ...more });
      const run = vi.spyOn(model.causalLM.runtime, "sequence");
      const countRuns = async () => {
        run.mockClear();
        await sampler.sample({ prompt: prompts[0], constraint, random: new RandomStream(1) });
        return run.mock.calls.length;
      };
      const { parametersVersion } = model.causalLM;
      const first = await countRuns();
      expect(first).toBeGreaterThan(0);
      expect(await countRuns()).toBe(0);
      model.causalLM.clearCaches();
      expect(await countRuns()).toBe(first);
      expect(await model.runIsolated(countRuns)).toBe(0);
      expect(await countRuns()).toBe(first);
      expect(model.causalLM.parametersVersion).toBe(parametersVersion);
    },
  );

  it("does not keep a result that failed", async () => {
    const model = await models.open({ config: { vocab_size: 320 }, scale: 1.5 });
    const sampler = new CompletionSampler(model, { ...settings, actionScoring: "sum" });
    const request = { prompt: prompts[0], constraint: choices, random: new RandomStream(1) };
    const completer = vi.spyOn(model, "completer").mockRejectedValueOnce(new Error("no memory"));
    await expect(sampler.sample(request)).rejects.toThrow("no memory");
    expect((await sampler.sample(request)).actionCandidates?.sequences).toHaveLength(2);
    completer.mockRestore();
  });
});
