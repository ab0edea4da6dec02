import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { AutoModelForCausalLM, getPeftModel } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { makeTrainable } from "../../models/adapters/get-peft-model.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { TokenExample } from "../data/sft-example.js";
import type { SftMetrics } from "../algorithms/sft/sft-learner.js";
import { SftTrainer, type SftTrainerOptions } from "./sft-trainer.js";

let written: Awaited<ReturnType<typeof writeRandomModel>>;
beforeAll(async () => {
  written = await writeRandomModel();
});
afterAll(() => written.remove());

const opened: LanguageModel[] = [];
afterEach(async () => {
  for (const model of opened.splice(0)) await model.close();
});

async function open(): Promise<LanguageModel> {
  const model = await AutoModelForCausalLM.fromPretrained(written.folder, { device: "cpu", threads: 1 });
  opened.push(model);
  return model;
}

const withAdapter = async (loraDropout = 0) => getPeftModel(await open(), { r: 4, loraAlpha: 8, loraDropout, seed: 3 });

async function withWeights(): Promise<LanguageModel> {
  const model = await open();
  return model.withCausalLM(await makeTrainable(model.causalLM));
}

/** Random sequences; several begin alike. */
function examples(count: number, seed = 1): TokenExample[] {
  const random = new RandomStream(seed);
  const draw = (length: number) => random.integersArray(3, 320, length);
  const prompts = [draw(20), draw(24)];
  return Array.from({ length: count }, (_, i) => {
    const prompt = i % 3 === 0 ? draw(random.integers(5, 30)) : prompts[i % 2];
    const completion = draw(random.integers(1, 6));
    return { tokens: [...prompt, ...completion], lossMask: [...prompt.map(() => 0), ...completion.map(() => 1)] };
  });
}

async function train(
  model: LanguageModel,
  options: SftTrainerOptions,
): Promise<{ trainer: SftTrainer; log: SftMetrics[] }> {
  const trainer = await SftTrainer.create(model, options);
  const log: SftMetrics[] = [];
  await trainer.train({ onStep: (stats) => void log.push(stats) });
  return { trainer, log };
}

const trained = async ({ causalLM: { parameters, runtime } }: LanguageModel) =>
  (await runtime.read(parameters.values)).data as Float32Array;

describe("SftTrainer", () => {
  it("reports the cross-entropy of the loss tokens and the fraction that are the argmax", async () => {
    const model = await withAdapter();
    const scoreAll = async (prefix: readonly number[]) => {
      const tokens = Array.from({ length: model.causalLM.config.vocabSize }, (_, token) => [token]);
      return (await model.score(prefix, tokens)).map(({ logProb }) => logProb);
    };
    let sum = 0;
    let count = 0;
    let correct = 0;
    const given: TokenExample[] = [];
    for (const [i, { tokens, lossMask }] of examples(4).entries()) {
      const sequence = [...tokens];
      for (let t = Array.from(lossMask).indexOf(1); t < sequence.length; t++) {
        const logProbs = await scoreAll(sequence.slice(0, t));
        const argmax = logProbs.indexOf(Math.max(...logProbs));
        if ((i + t) % 2 === 0) sequence[t] = argmax;
        sum -= logProbs[sequence[t]];
        count++;
        if (sequence[t] === argmax) correct++;
      }
      given.push({ tokens: sequence, lossMask });
    }
    const trainer = await SftTrainer.create(model, { evaluation: given });
    const { eval_loss: loss, eval_mean_token_accuracy: accuracy } = await trainer.evaluate();
    expect(loss).toBeCloseTo(sum / count, 4);
    expect(correct / count).toBeGreaterThan(0.2);
    expect(accuracy).toBe(correct / count);
    const stats = await trainer.update(given);
    expect(stats.loss).toBeCloseTo(sum / count, 4);
    expect(stats.mean_token_accuracy).toBe(correct / count);
    expect(stats.num_tokens).toBe(given.reduce((total, { tokens }) => total + tokens.length, 0));
  });

  it("has the gradient of finite differences", async () => {
    const model = await withWeights();
    const given = examples(5);
    const trainer = await SftTrainer.create(model, { learningRate: 0 });
    await trainer.update(given);
    const { parameters } = model.causalLM;
    for (const name of ["model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight", "model.norm.weight"]) {
      const values = await parameters.read(name);
      const gradient = await parameters.readGradient(name);
      const strongest = gradient.reduce((best, value, i) => (Math.abs(value) > Math.abs(gradient[best]) ? i : best), 0);
      const lossAt = async (shift: number) => {
        await parameters.write(name, values.with(strongest, values[strongest] + shift));
        return (await trainer.evaluate(given)).eval_loss;
      };
      const step = 5e-3;
      const slope = ((await lossAt(step)) - (await lossAt(-step))) / (2 * step);
      await parameters.write(name, values);
      expect(slope / gradient[strongest]).toBeCloseTo(1, 1);
    }
  });

  it.each([
    ["an adapter", withAdapter],
    ["all weights", withWeights],
  ])("fits its examples with %s", async (_, make) => {
    const model = await make();
    const messages = [
      { role: "user", content: "14 or 20?" },
      { role: "assistant", content: "stay" },
    ];
    const before = await model.score(messages.slice(0, 1), ["stay"]);
    const { log } = await train(model, { train: [{ messages }], learningRate: 1e-2, maxSteps: 25 });
    const after = await model.score(messages.slice(0, 1), ["stay"]);
    expect(log[24].loss).toBeLessThan(0.1 * log[0].loss);
    expect(after[0].logProb).toBeGreaterThan(before[0].logProb + 3);
    expect((await model.generate(messages.slice(0, 1), { temperature: 0, maxNewTokens: 8 })).text).toBe("stay");
  });

  it("makes the same update in any split into micro-batches", async () => {
    const given = examples(12);
    const results = await Promise.all(
      [{}, { sharePrefixes: false }, { microBatchTokens: 40 }, { microBatchTokens: 1, sharePrefixes: false }].map(
        async (settings) => {
          const model = await withWeights();
          const trainer = await SftTrainer.create(model, { ...settings, learningRate: 1e-3 });
          const stats = await trainer.update(given);
          return { stats, values: await trained(model) };
        },
      ),
    );
    const [first, ...others] = results;
    for (const { stats, values } of others) {
      expect(stats.loss).toBeCloseTo(first.stats.loss, 4);
      expect(stats.grad_norm / first.stats.grad_norm).toBeCloseTo(1, 3);
      const differences = values.map((value, i) => Math.abs(value - first.values[i]));
      // Adam moves each value by about the rate, whatever its gradient: nearly all must have moved
      // alike.
      expect(differences.filter((difference) => difference > 1e-4).length).toBeLessThan(0.01 * values.length);
    }
  });

  it("resumes with the numbers of an uninterrupted run", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sft-"));
    const settings = {
      train: examples(20),
      batchSize: 4,
      numTrainEpochs: 2,
      learningRate: 1e-2,
      warmupSteps: 2,
      seed: 5,
    };
    const { log } = await train(await withAdapter(0.1), settings);
    const stopped = await SftTrainer.create(await withAdapter(0.1), settings);
    const stop = new AbortController();
    const first: SftMetrics[] = [];
    await stopped.train({
      checkpointDir: folder,
      signal: stop.signal,
      onStep: (stats) => {
        first.push(stats);
        if (stats.step === 6) stop.abort();
      },
    });
    const resumed = await SftTrainer.create(await withAdapter(0.1), settings);
    expect(await resumed.resume(folder)).toBe(6);
    const second: SftMetrics[] = [];
    await resumed.train({ onStep: (stats) => void second.push(stats) });
    const steady = (stats: SftMetrics) => ({ ...stats, tokens_per_second: 0 });
    expect([...first, ...second].map(steady)).toEqual(log.map(steady));
    expect(log).toHaveLength(10);
    await rm(folder, { recursive: true });
  });

  it("ends after evaluations without a lower loss", async () => {
    const settings = {
      train: examples(4),
      evaluation: examples(8).slice(4),
      batchSize: 4,
      maxSteps: 16,
      learningRate: 0.1,
      lrSchedulerType: "constant",
    } as const;
    const trainWith = async (options: { readonly earlyStoppingPatience?: number }) => {
      const losses: number[] = [];
      const trainer = await SftTrainer.create(await withAdapter(), settings);
      const onEvaluation = ({ eval_loss: loss }: { readonly eval_loss: number }) => void losses.push(loss);
      return { losses, ...(await trainer.train({ evalSteps: 1, onEvaluation, ...options })) };
    };
    const { losses } = await trainWith({});
    const isStale = (i: number) => Math.min(...losses.slice(0, i - 1)) <= Math.min(losses[i - 1], losses[i]);
    const last = losses.findIndex((_, i) => i >= 2 && isStale(i));
    expect(last).toBeGreaterThan(0);
    const stopped = await trainWith({ earlyStoppingPatience: 2 });
    expect(stopped.losses).toEqual(losses.slice(0, last + 1));
    expect(stopped).toMatchObject({ isInterrupted: false, state: { updates: last + 1 } });
    expect(stopped.stoppedEarly).toMatch(/^sft\/eval_loss did not improve on /);
  });

  it("follows the learning rate schedule", async () => {
    const rates = async (options: SftTrainerOptions) =>
      (
        await train(await withAdapter(), { train: examples(4), batchSize: 4, maxSteps: 6, learningRate: 1, ...options })
      ).log.map((stats) => Number(stats.learning_rate.toFixed(3)));
    expect(await rates({ warmupSteps: 2 })).toEqual([0, 0.5, 1, 0.75, 0.5, 0.25]);
    expect(await rates({ lrSchedulerType: "constant" })).toEqual([1, 1, 1, 1, 1, 1]);
    expect(await rates({ lrSchedulerType: "cosine" })).toEqual([1, 0.933, 0.75, 0.5, 0.25, 0.067]);
  });

  it("rejects missing and invalid arguments", async () => {
    const model = await open();
    await expect(SftTrainer.create(model)).rejects.toThrow(/has no trainable parameters/);
    const adapted = await withAdapter();
    await expect(SftTrainer.create(adapted, { learningRat: 1 } as never)).rejects.toThrow(/Did you mean learningRate/);
    await expect(SftTrainer.create(adapted, { batchSize: 0 })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(SftTrainer.create(adapted, { train: [] })).rejects.toThrow(/no examples/);
    await expect((await SftTrainer.create(adapted)).train()).rejects.toThrow(/nothing to train on/);
    for (const [options, message] of [
      [{ evalSteps: 0 }, /`evalSteps` must be/],
      [{ evalSteps: 1 }, /`evalSteps` needs examples to evaluate: give SftTrainer.create `evaluation`/],
      [{ earlyStoppingPatience: 1 }, /`earlyStoppingPatience` needs examples/],
      [{ earlyStoppingThreshold: 1 }, /is read with `earlyStoppingPatience` only/],
    ] as const)
      await expect((await SftTrainer.create(adapted, { train: examples(4) })).train(options)).rejects.toThrow(message);
    await expect((await SftTrainer.create(adapted)).update([{ tokens: [1, 2], lossMask: [0, 0] }])).rejects.toThrow(
      /no loss tokens/,
    );
  });
});
