import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../../test/support/random-model.js";
import { readTrainedValues } from "../../../../test/support/trainable.js";
import { AutoModelForCausalLM, getPeftModel } from "../../../generation/index.js";
import { loadPromptDataset } from "../../data/prompt-dataset.js";
import { decodeChunk, parseRolloutLine } from "../../tracking/rollouts/chunk.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { RewardFunction } from "./reward-scorer.js";
import { GrpoTrainer, RlooTrainer, type GrpoTrainerOptions } from "./grpo-trainer.js";

let files: Awaited<ReturnType<typeof writeRandomModel>>;
let folder: string;
let base: LanguageModel;
beforeAll(async () => {
  files = await writeRandomModel({ scale: 0.3, maxPositions: 64 });
  base = await AutoModelForCausalLM.fromPretrained(files.folder, { device: "cpu", threads: 1 });
  folder = await mkdtemp(join(tmpdir(), "prompts-"));
});
afterAll(async () => {
  await base.close();
  await files.remove();
  await rm(folder, { recursive: true });
});

const openModel = async (): Promise<LanguageModel> => getPeftModel(base, { r: 8, seed: 1 });

/** The share of a completion's tokens that are below 160: about half of them at first. */
const lowTokens: RewardFunction = ({ completionIds }) =>
  completionIds.map((ids) => ids.filter((id) => id < 160).length / ids.length);

const dataset = ["one", "two", "three", "four", "five"].map((prompt, i) => ({ prompt, answer: i }));
const args = {
  batchSize: 16,
  numGenerations: 4,
  maxCompletionLength: 4,
  maxSteps: 25,
  learningRate: 0.06,
  lrSchedulerType: "constant",
  seed: 1,
} as const;

const quiet = () => {};

async function train(options: Partial<GrpoTrainerOptions> = {}) {
  const model = await openModel();
  const rewards: number[] = [];
  const trainer = new GrpoTrainer({
    model,
    rewardFuncs: lowTokens,
    trainDataset: dataset,
    args,
    onWarning: quiet,
    ...options,
  });
  const result = await trainer.train({ onStep: (_, { reward }) => void rewards.push(reward) });
  return { model, rewards, ...result };
}

describe("GrpoTrainer", () => {
  it("increases the reward, and decreases it with the sign flipped", async () => {
    const large = { ...args, batchSize: 32, numGenerations: 8, learningRate: 0.03, maxSteps: 40 };
    const better = await train({ args: large });
    const worse = await train({ args: large, rewardWeights: [-1] });
    expect(better.rewards).toHaveLength(40);
    expect(better.rewards[0]).toBeLessThan(0.7);
    expect(better.rewards.at(-1)).toBeGreaterThan(0.9);
    expect(worse.rewards.at(-1)).toBeGreaterThan(-0.1);
    expect(better.metrics).toMatchObject({ "completions/max_length": 4, num_tokens: expect.any(Number) as number });
  });

  it("saves checkpoints of batches with unscored completions and rewards beyond the limit", async () => {
    const outputDir = join(folder, "unscored");
    const few = { ...args, maxSteps: 2, saveSteps: 1, outputDir };
    let calls = 0;
    const partial: RewardFunction = ({ completions }) => {
      calls++;
      return completions.map((_, i) => (i % 3 === 0 ? (calls % 2 === 0 ? 1e200 : null) : i));
    };
    const { metrics } = await train({ rewardFuncs: partial, args: few });
    expect(metrics["rewards/frac_unscored"]).toBeGreaterThan(0);
    const state = await readFile(join(outputDir, "checkpoints", "000002", "state.json"), "utf8");
    const { recentReturns } = (JSON.parse(state) as { trainer: { recentReturns: number[] } }).trainer;
    expect(recentReturns.every((value) => value >= 0 && value < 16)).toBe(true);
  });

  it("warms the learning rate up and decays it over the rest of the run, as Transformers' linear schedule", async () => {
    const rates: number[] = [];
    const trainer = new GrpoTrainer({
      model: await openModel(),
      rewardFuncs: lowTokens,
      trainDataset: dataset,
      args: { ...args, maxSteps: 6, learningRate: 0.01, lrSchedulerType: "linear", warmupSteps: 2 },
      onWarning: quiet,
    });
    await trainer.train({ onStep: (_, { learning_rate: rate }) => void rates.push(rate) });
    const expected = [0, 0.005, 0.01, 0.0075, 0.005, 0.0025];
    rates.forEach((rate, i) => expect(rate).toBeCloseTo(expected[i], 8));
    expect(rates).toHaveLength(6);
  });

  it("applies AdamW's settings", async () => {
    const train2 = async (settings: object) => {
      const { model } = await train({ args: { ...args, maxSteps: 2, ...settings } });
      return readTrainedValues(model);
    };
    const plain = await train2({});
    expect(await train2({ weightDecay: 0, adamBeta1: 0.9, adamBeta2: 0.999, adamEpsilon: 1e-8 })).toEqual(plain);
    for (const setting of [{ weightDecay: 0.5 }, { adamBeta1: 0.5 }, { adamBeta2: 0.5 }, { adamEpsilon: 1 }])
      expect(await train2(setting)).not.toEqual(plain);
  });

  it("evaluates on other rows without a trace in the run", async () => {
    const few = { ...args, maxSteps: 4 };
    const evaluated = async (options: object) => {
      const rows: Record<string, number>[] = [];
      const common = { rewardFuncs: lowTokens, trainDataset: dataset, onWarning: quiet, args: few };
      const model = await openModel();
      await new GrpoTrainer({ ...common, model, ...options }).train({
        onStep: (_, metrics) => void rows.push(metrics),
      });
      return { rows, values: await readTrainedValues(model) };
    };
    const evalDataset = dataset.slice(0, 2);
    const { rows, values } = await evaluated({ evalDataset, args: { ...few, evalSteps: 3 } });
    expect(rows.map((row) => "eval_reward" in row)).toEqual([false, false, true, true]);
    expect(rows[3].eval_reward).toBeCloseTo(rows[3]["eval_rewards/lowTokens/mean"], 12);
    expect(rows[3]["eval_completions/mean_length"]).toBeGreaterThan(0);
    expect(values).toEqual((await evaluated({})).values);
    const untrained = { ...few, learningRate: 0, evalSteps: 1 };
    const same = (await evaluated({ evalDataset, args: untrained })).rows.map((row) => row.eval_reward);
    expect(new Set(same).size).toBe(1);
    await expect(evaluated({ args: { ...few, evalSteps: 3 } })).rejects.toThrow("`evalSteps` needs an evalDataset");
    await expect(evaluated({ evalDataset: [] })).rejects.toThrow("evalDataset has no rows");
  });

  it("gives the chat template chatTemplateKwargs", async () => {
    const path = join(files.folder, "tokenizer_config.json");
    const config = JSON.parse(await readFile(path, "utf8")) as object;
    const template = "{% for m in messages %}{{ style or 'none' }}{{ m.content }}{% endfor %}";
    await writeFile(path, JSON.stringify({ ...config, chat_template: template }));
    const model = await AutoModelForCausalLM.fromPretrained(files.folder, { device: "cpu", threads: 1 });
    const rows = [{ prompt: [{ role: "user", content: "a" }] }];
    const prompts = await Promise.all(
      [undefined, { style: "brief" }].map((kwargs) =>
        loadPromptDataset(rows, model, 4, { chatTemplateKwargs: kwargs }),
      ),
    );
    expect(prompts.map(([{ tokens }]) => model.tokenizer.decode(tokens))).toEqual(["nonea", "briefa"]);
    const chatTemplateKwargs = { style: "x".repeat(100) };
    const adapted = await getPeftModel(model, { r: 8, seed: 1 });
    const options = { model: adapted, rewardFuncs: lowTokens, trainDataset: rows, args, chatTemplateKwargs };
    const trainer = new GrpoTrainer(options);
    await expect(trainer.train()).rejects.toMatchObject({ code: "CONTEXT_OVERFLOW" });
    await model.close();
    await writeFile(path, JSON.stringify(config));
  });

  it("passes TRL's arguments to reward functions: prompts, completions, their tokens and the other columns", async () => {
    const seen: Record<string, readonly unknown[]>[] = [];
    const spy: RewardFunction = async (batch) => {
      seen.push(batch);
      return batch.completions.map((_, i) => i);
    };
    await train({ rewardFuncs: [spy], args: { ...args, maxSteps: 1, shuffleDataset: false, maxResamples: 0 } });
    expect(seen).toHaveLength(1);
    const four = (value: unknown) => [value, value, value, value];
    expect(seen[0].prompts).toEqual(["one", "two", "three", "four"].flatMap(four));
    expect(seen[0].answer).toEqual([0, 1, 2, 3].flatMap(four));
    expect(seen[0].completions).toHaveLength(16);
    expect(new Set(seen[0].completionIds.map((ids) => (ids as number[]).join())).size).toBeGreaterThan(10);
  });

  it("applies the chat template to messages, and shuffles a JSONL file in each epoch", async () => {
    const path = join(folder, "rows.jsonl");
    const rows = [1, 2, 3].map((i) => ({ prompt: [{ role: "user", content: `say ${i}` }], id: i }));
    await writeFile(path, `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`);
    const ids: unknown[] = [];
    const spy: RewardFunction = (batch) => {
      ids.push(batch.id[0]);
      return batch.completions.map(() => 1);
    };
    const oneByOne = { ...args, batchSize: 4, numTrainEpochs: 6, maxSteps: undefined, maxResamples: 0 };
    const { globalStep } = await train({ rewardFuncs: spy, trainDataset: path, args: oneByOne });
    expect(globalStep).toBe(18);
    const epochs = [0, 3, 6, 9, 12, 15].map((start) => ids.slice(start, start + 3));
    for (const epoch of epochs) expect(new Set(epoch)).toEqual(new Set([1, 2, 3]));
    expect(new Set(epochs.map((epoch) => epoch.join())).size).toBeGreaterThan(1);
  });

  it("trains on empty completions", async () => {
    const empty: RewardFunction = ({ completions, completionIds }) =>
      completions.map((text, i) => text === "" && completionIds[i].length === 1);
    const ending = { ...args, batchSize: 64, numGenerations: 32, maxCompletionLength: 2, maxSteps: 20 };
    const { rewards, metrics } = await train({ rewardFuncs: empty, args: ending });
    expect(rewards[0]).toBeLessThan(0.1);
    expect(rewards.at(-1)).toBeGreaterThan(0.4);
    expect(metrics).toMatchObject({ "completions/min_length": 1, num_skipped_steps: 0 });
  });

  it("is not affected by reward functions that modify their arguments", async () => {
    const spoil: RewardFunction = (batch) => {
      const scores = lowTokens(batch) as number[];
      for (const ids of batch.completionIds) (ids as number[]).fill(1);
      return scores;
    };
    const few = { ...args, maxSteps: 2 };
    const spoilt = await train({ rewardFuncs: spoil, args: few });
    const whole = await train({ args: few });
    expect(await readTrainedValues(spoilt.model)).toEqual(await readTrainedValues(whole.model));
  });

  it("resumes with the numbers of an uninterrupted run", async () => {
    const outputDir = join(folder, "run");
    const short = { ...args, maxSteps: 8, saveSteps: 3, tensorboard: false };
    const whole = await train({ args: { ...short, outputDir: join(folder, "whole") } });
    const stop = new AbortController();
    const first = new GrpoTrainer({
      model: await openModel(),
      rewardFuncs: lowTokens,
      trainDataset: dataset,
      args: { ...short, outputDir },
    });
    const stopped = await first.train({
      signal: stop.signal,
      onStep: (step) => (step === 4 ? stop.abort() : undefined),
    });
    expect(stopped).toMatchObject({ globalStep: 4, isInterrupted: true });
    const options = { rewardFuncs: lowTokens, trainDataset: dataset, args: { ...short, outputDir } };
    const again = new GrpoTrainer({ ...options, model: await openModel() });
    await expect(again.train()).rejects.toThrow("resumeFromCheckpoint: true");
    const model = await openModel();
    const rest = await new GrpoTrainer({ ...options, model }).train({ resumeFromCheckpoint: true });
    expect(rest.globalStep).toBe(8);
    expect(await readTrainedValues(model)).toEqual(await readTrainedValues(whole.model));
    const steps = (await readFile(join(outputDir, "metrics.jsonl"), "utf8")).trim().split("\n");
    expect(steps.map((line) => (JSON.parse(line) as { step: number }).step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const recorded = await readFile(join(outputDir, "rollouts.jsonl"), "utf8");
    expect(recorded).toBe(await readFile(join(folder, "whole", "rollouts.jsonl"), "utf8"));
    const { episodes } = await decodeChunk(parseRolloutLine(recorded.split("\n")[7])!);
    expect(episodes.map(({ row: { step, group } }) => [step, group])).toEqual(Array.from({ length: 4 }, () => [8, 0]));
    expect(episodes[0].turns[0].entropies!.length).toBe(episodes[0].row.tokens);
    expect(dataset.map(({ prompt }) => prompt)).toContain(episodes[0].turns[0].observation);
    const changed = dataset.map((row, i) => (i === 3 ? { ...row, answer: 7 } : row));
    for (const [trainDataset, message] of [
      [dataset.slice(1), /has rows 5, this run has 4/],
      [changed, /The rows of trainDataset have changed since the checkpoint/],
    ] as const) {
      const other = new GrpoTrainer({ ...options, model: await openModel(), trainDataset });
      await expect(other.train({ resumeFromCheckpoint: true })).rejects.toMatchObject({
        code: "RUN_INCOMPATIBLE",
        message: expect.stringMatching(message) as string,
      });
    }
  });

  it("normalizes each function's rewards before weighting them (normalize_then_sum)", async () => {
    const loud: RewardFunction = ({ completions }) => completions.map((_, i) => 1000 * (i % 4));
    const both = { rewardFuncs: [lowTokens, loud], rewardWeights: [1, 0] };
    const few = { ...args, maxSteps: 3, multiObjectiveAggregation: "normalize_then_sum" } as const;
    const alone = await train({ args: few });
    const weighted = await train({ ...both, args: few });
    expect(await readTrainedValues(weighted.model)).toEqual(await readTrainedValues(alone.model));
    expect(weighted.metrics["rewards/loud/mean"]).toBe(1500);
  });

  it("opens a model given by name, and saves the adapter", async () => {
    const trainer = new GrpoTrainer({
      model: files.folder,
      peftConfig: { r: 4 },
      rewardFuncs: lowTokens,
      trainDataset: dataset,
      args: { ...args, maxSteps: 1, outputDir: join(folder, "named"), tensorboard: false },
    });
    await expect(trainer.saveModel()).rejects.toThrow("there is no model before train()");
    await trainer.train();
    await trainer.saveModel();
    expect(trainer.model?.causalLM.adapter?.config.r).toBe(4);
    await trainer.close();
    expect(await readFile(join(folder, "named", "adapter_config.json"), "utf8")).toContain('"r": 4');
  });
});

describe("RlooTrainer", () => {
  it("increases the reward", async () => {
    const rewards: number[] = [];
    const trainer = new RlooTrainer({
      model: await openModel(),
      rewardFuncs: lowTokens,
      trainDataset: dataset,
      args: { ...args, batchSize: 32, numGenerations: 8, beta: 0, maxSteps: 50 },
    });
    await trainer.train({ onStep: (_, { reward }) => void rewards.push(reward) });
    expect(rewards.at(-1)).toBeGreaterThan(0.8);
  });
});
