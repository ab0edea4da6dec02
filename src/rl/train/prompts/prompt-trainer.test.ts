import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../../test/support/random-model.js";
import { AutoModelForCausalLM, getPeftModel } from "../../../generation/index.js";
import { openTrainable } from "../../../generation/auto-model.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { RewardFunction } from "./reward-scorer.js";
import { GrpoTrainer, RlooTrainer, type GrpoTrainerOptions } from "./grpo-trainer.js";

let files: Awaited<ReturnType<typeof writeRandomModel>>;
let folder: string;
const models: LanguageModel[] = [];
beforeAll(async () => {
  files = await writeRandomModel({ scale: 0.3, maxPositions: 64 });
  folder = await mkdtemp(join(tmpdir(), "prompts-"));
});
afterAll(async () => {
  for (const model of models) await model.close();
  await files.remove();
  await rm(folder, { recursive: true });
});

async function openModel(): Promise<LanguageModel> {
  const base = await AutoModelForCausalLM.fromPretrained(files.folder, { device: "cpu", threads: 1 });
  const model = await getPeftModel(base, { r: 8, seed: 1 });
  models.push(model);
  return model;
}

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

describe("PromptTrainer rejects, before sampling,", () => {
  const never: RewardFunction = () => {
    throw new Error("must not be called");
  };

  it.each<[string, Partial<GrpoTrainerOptions>, string]>([
    ["a group of one", { args: { numGenerations: 1 } }, "`numGenerations` must be an integer >= 2, got 1"],
    [
      "a batch that groups do not divide",
      { args: { batchSize: 10, numGenerations: 4 } },
      "Use 12, or another group size",
    ],
    ["an unknown argument", { args: { numGeneration: 4 } as never }, "Did you mean numGenerations?"],
    ["settings that contradict each other", { args: { grouping: "observation", baseline: "step" } }, 'use "group"'],
    ["no functions", { rewardFuncs: [] }, "rewardFuncs is empty"],
    ["what is no function", { rewardFuncs: [3 as never] }, "rewardFuncs[0] is 3, not a function"],
    ["weights of other functions", { rewardWeights: [1, 2] }, "2 rewardWeights for 1 rewardFuncs"],
    ["a weight that is no number", { rewardWeights: [Number.NaN] }, "rewardWeights[0] must be a finite number"],
    ["weights of 0 alone", { rewardWeights: [0] }, "All rewardWeights are 0"],
    ["no model", { model: undefined }, "GrpoTrainer needs model"],
    ["no reward functions", { rewardFuncs: undefined }, "GrpoTrainer needs rewardFuncs"],
    ["what is no list of functions", { rewardFuncs: 3 as never }, "rewardFuncs must be a function"],
    ["no data set", { trainDataset: undefined }, "GrpoTrainer needs trainDataset"],
    ["a row in place of rows", { trainDataset: { prompt: "a" } as never }, "trainDataset must be a list of rows"],
    ["TRL's name of an option", { reward_funcs: never } as never, "Did you mean rewardFuncs?"],
    ["a setting outside of args", { maxCompletionLength: 4 } as never, "Settings go into args"],
    ["variables that are no object", { chatTemplateKwargs: "brief" as never }, "must be an object of variables"],
    [
      "replies that are all cut off, of which none may train",
      { args: { ignoreEos: true, maskTruncatedCompletions: true } },
      "so that nothing would be trained",
    ],
    ["ratios that all are out of bounds", { args: { delta: 0.9 } }, "`delta` must be a number > 1"],
  ])("%s", (_, options, message) => {
    const make = () => new GrpoTrainer({ model: "unopened", rewardFuncs: never, trainDataset: dataset, ...options });
    expect(make).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(message) as string }),
    );
  });

  it.each<[string, GrpoTrainerOptions["trainDataset"], string]>([
    ["no rows", [], "trainDataset has no rows"],
    [
      "a row without a prompt",
      [{ prompt: "a" }, { question: "b" } as never],
      "row 1 of trainDataset: the row has no prompt",
    ],
    ["a row that is none", [{ prompt: "a" }, null as never], "row 1 of trainDataset: the row must be an object"],
    [
      "an empty prompt",
      [{ prompt: "" }],
      'row 0 of trainDataset: "prompt" must be a non-empty text or array of messages, got ""',
    ],
    ["a column with a taken name", [{ prompt: "a", completions: 1 }], 'the column name "completions" is reserved'],
    ["a message without a role", [{ prompt: [{ content: "a" }] as never }], "message 1 has no role"],
    ["a prompt longer than the context", [{ prompt: "a" }, { prompt: "word ".repeat(60) }], "row 1 of trainDataset ("],
  ])("%s", async (_, trainDataset, message) => {
    await expect(train({ trainDataset, rewardFuncs: never })).rejects.toThrow(message);
  });

  it("a broken line of a file, by its number", async () => {
    const path = join(folder, "broken.jsonl");
    await writeFile(path, '{"prompt": "a"}\n\n{"text": "b"}\n');
    await expect(train({ trainDataset: path, rewardFuncs: never })).rejects.toThrow(
      expect.objectContaining({
        code: "FILE_CORRUPT",
        message: expect.stringContaining("line 3: the row has no prompt") as string,
      }),
    );
    await expect(train({ trainDataset: join(folder, "none.jsonl") })).rejects.toThrow("does not exist");
  });

  it("a completion longer than the context", async () => {
    const long = { ...args, maxCompletionLength: 64 };
    await expect(train({ rewardFuncs: never, args: long })).rejects.toThrow(
      expect.objectContaining({ code: "CONTEXT_OVERFLOW" }),
    );
  });

  it("resuming without a checkpoint", async () => {
    const trainer = new GrpoTrainer({ model: "unopened", rewardFuncs: never, trainDataset: dataset });
    await expect(trainer.train({ resumeFromCheckpoint: true })).rejects.toThrow("needs args.outputDir");
  });

  it("a divergence from a model without its adapter, where there is none", async () => {
    const model = await openTrainable(files.folder, {
      device: "cpu",
      threads: 1,
      peftConfig: null,
      valueHead: null,
    });
    models.push(model);
    await expect(train({ model, rewardFuncs: never, args: { ...args, beta: 0.1 } })).rejects.toThrow(
      "Set beta to 0, or train an adapter",
    );
    const rloo = new RlooTrainer({
      model,
      rewardFuncs: never,
      trainDataset: dataset,
      args: { maxCompletionLength: 4 },
    });
    await expect(rloo.train()).rejects.toThrow("Set beta to 0");
  });

  it("a model of which nothing is trained", async () => {
    const model = await AutoModelForCausalLM.fromPretrained(files.folder, { device: "cpu", threads: 1 });
    models.push(model);
    await expect(train({ model, rewardFuncs: never })).rejects.toThrow("it has no trainable parameters");
  });
});
