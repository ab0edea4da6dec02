import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GatewayTrainer } from "../src/gateway.js";
import * as preferences from "../src/preferences.js";
import * as envs from "../src/envs.js";
import * as llamagym from "../src/index.js";
import * as runs from "../src/runs.js";
import * as testing from "../src/testing.js";

/** An option that nothing has, as JavaScript may pass it. */
const other = { bogus: 1 } as object;
const { make } = llamagym;

class CoinEnv extends envs.Env<number, number> {
  readonly observationSpace = new envs.Discrete(2);
  readonly actionSpace = new envs.Discrete(2);
  reset() {
    return { observation: 0, info: {} };
  }
  step() {
    return { observation: 1, reward: 1, terminated: true, truncated: false, info: {} };
  }
}

/** A class that extends nothing. */
class LlamaClass {
  readonly legs = 4;
}

class Tosser extends llamagym.Agent<number, number> {
  override formatObservation() {
    return "Heads or tails?";
  }

  override getChoices() {
    return ["heads", "tails"];
  }

  override extractAction(response: string) {
    return response === "heads" ? 0 : 1;
  }
}

describe("an option that a function does not have", () => {
  let model: llamagym.LanguageModel;
  let adapted: llamagym.LanguageModel;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "llamagym-options-"));
    model = await llamagym.AutoModelForCausalLM.fromPretrained("embedded", { threads: 1 });
    adapted = await llamagym.AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { threads: 1 });
  });
  afterAll(async () => {
    await model.close();
    await adapted.close();
    await rm(folder, { recursive: true });
  });

  const agent = () =>
    new llamagym.TextAgent(adapted, make("Blackjack-v1").text!, { actionMode: "choices" }) as llamagym.Agent;
  const limited = () => new envs.TimeLimit(new CoinEnv(), { maxEpisodeSteps: 3 });
  const run = { agent: undefined as never, env: "Blackjack-v1", turns: 8 };
  const messages = [{ role: "user", content: "Hello" }] as const;
  const registration = { id: "Kinds-v0", entryPoint: CoinEnv };
  const open = (options: object) => llamagym.AutoModelForCausalLM.fromPretrained("embedded", options);
  const wrong = Promise.resolve("embedded") as never;
  const prompts = { model: undefined as never, rewardFuncs: () => [1], trainDataset: [{ prompt: "a" }] };

  it.each<[string, () => unknown]>([
    ["AutoModelForCausalLM.fromPretrained", () => llamagym.AutoModelForCausalLM.fromPretrained("embedded", other)],
    [
      "AutoModelForCausalLMWithValueHead.fromPretrained",
      () => llamagym.AutoModelForCausalLMWithValueHead.fromPretrained("embedded", other),
    ],
    ["a value head", () => llamagym.AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { valueHead: other })],
    ["peftConfig", () => llamagym.AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { peftConfig: other })],
    ["PeftModel.fromPretrained", () => llamagym.PeftModel.fromPretrained(model, folder, other)],
    ["getPeftModel", () => llamagym.getPeftModel(model, other)],
    ["AutoTokenizer.fromPretrained", () => llamagym.AutoTokenizer.fromPretrained("embedded", other)],
    ["encode", () => model.tokenizer.encode("Hello", other)],
    ["decode", () => model.tokenizer.decode([1], other)],
    ["applyChatTemplate", () => model.tokenizer.applyChatTemplate(messages, other)],
    ["encodeChat", () => model.tokenizer.encodeChat(messages, other)],
    ["Conversation", () => new llamagym.Conversation(model.tokenizer, other)],
    ["generate", () => model.generate("Hello", other)],
    ["generateBatch", () => model.generateBatch(["Hello"], other)],
    ["score", () => model.score("Hello", ["a"], other)],
    ["choose", () => model.choose("Hello", ["a", "b"], other)],
    ["savePretrained", () => model.savePretrained(join(folder, "saved"), other)],
    ["export", () => model.export(join(folder, "exported"), { format: "merged", ...other })],
    ["Agent", () => new Tosser(adapted, undefined, other)],
    ["terminateEpisode", () => agent().terminateEpisode(other)],
    ["ReplayBuffer", () => new llamagym.ReplayBuffer(other)],
    ["ppo", () => llamagym.ppo(other)],
    ["Trainer", () => new llamagym.Trainer({ ...run, agent: agent(), ...other })],
    ["Trainer.train", () => new llamagym.Trainer({ ...run, agent: agent() }).train(other)],
    ["evaluate", () => llamagym.evaluate(agent(), "Blackjack-v1", { episodes: 1, ...other })],
    ["readExamples", () => llamagym.readExamples("none.jsonl", other)],
    ["actionExtractors", () => llamagym.actionExtractors(other)],
    ["jsonAction", () => llamagym.jsonAction(other)],
    ["mentionedChoice", () => llamagym.mentionedChoice(["a"], other)],
    ["nearestChoice", () => llamagym.nearestChoice(["a"], other)],
    ["numberedChoice", () => llamagym.numberedChoice(["a"], other)],
    ["taggedAnswer", () => llamagym.taggedAnswer(other)],
    ["combineTrackers", () => llamagym.combineTrackers([], { onWarning: () => {}, ...other })],
    ["register", () => llamagym.register({ id: "Options-v0", entryPoint: CoinEnv, ...other })],
    ["make", () => make("Blackjack-v1", { ...other })],
    ["reset", () => make("Blackjack-v1").reset(other)],
    ["makeVector", () => envs.makeVector("Blackjack-v1", { numEnvs: 1, ...other })],
    ["StickyAction", () => new envs.StickyAction(new CoinEnv(), { repeatActionProbability: 0.1, ...other })],
    ["FrameStackObservation", () => new envs.FrameStackObservation(new CoinEnv(), { stackSize: 2, ...other })],
    ["NormalizeReward", () => new envs.NormalizeReward(new CoinEnv(), other)],
    ["ClipReward", () => new envs.ClipReward(new CoinEnv(), { minReward: 0, ...other })],
    ["RecordEpisodeStatistics", () => new envs.RecordEpisodeStatistics(new CoinEnv(), other)],
    ["TimeAwareObservation", () => new envs.TimeAwareObservation(new CoinEnv(), other)],
    ["startRun", () => runs.startRun({ env: "Blackjack-v1", turns: 8, ...other }, join(folder, "run"))],
    ["startRun's hooks", () => runs.startRun({ env: "Blackjack-v1", turns: 8 }, join(folder, "run"), other)],
    ["resumeRun", () => runs.resumeRun(join(folder, "run"), {}, other)],
    ["judge", () => runs.judge({ model, rubric: "Is it polite?", ...other })],
    ["Caller", () => new runs.Caller({ baseURL: "http://127.0.0.1:1", ...other })],
    ["generate of a Caller", () => new runs.Caller({ baseURL: "http://127.0.0.1:1" }).generate(["a"], other)],
    ["openRunTrackers", () => runs.openRunTrackers(folder, { onWarning: () => {}, ...other })],
    ["resolveWandbConfig", () => runs.resolveWandbConfig(other)],
    [
      "recordDemonstrations",
      () => runs.recordDemonstrations(() => new CoinEnv(), runs.randomPolicy, { episodes: 1, ...other }),
    ],
    ["checkEnv", () => testing.checkEnv(new CoinEnv(), other)],
    ["checkAlgorithm", () => testing.checkAlgorithm(llamagym.ppo, other)],
    ["checkGame", () => testing.checkGame(new envs.Nim(), other)],
    ["checkRewardFunction", () => testing.checkRewardFunction(() => [1], { rows: [], ...other })],
    ["expectToLearn", () => testing.expectToLearn("Blackjack-v1", other)],
  ])("is refused by name: %s", async (_, call) => {
    await expect(async () => call()).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining('"bogus"') as string,
    });
  });

  it.each([
    [
      "onProgress",
      "a function",
      () => llamagym.AutoModelForCausalLM.fromPretrained("embedded", { onProgress: 3 } as never),
    ],
    [
      "cacheDir",
      "a non-empty string",
      () => llamagym.AutoModelForCausalLM.fromPretrained("embedded", { cacheDir: "" }),
    ],
    ["signal", "an AbortSignal", () => model.generate("a", { signal: new AbortController() } as never)],
    ["onWarning", "a function", () => new Tosser(adapted, undefined, { onWarning: "warn" } as never)],
    ["checkpointDir", "a non-empty string", () => new llamagym.Trainer({ ...run, agent: agent(), checkpointDir: "" })],
    [
      "signal",
      "an AbortSignal",
      () => new llamagym.Trainer({ ...run, agent: agent() }).train({ signal: true } as never),
    ],
    ["args", "an object of settings", () => new llamagym.GrpoTrainer({ ...prompts, model: adapted, args: 3 } as never)],
    ["model", "a promise: await it", () => new llamagym.GrpoTrainer({ ...prompts, model: wrong })],
    ["The first argument of getPeftModel is", "a model", () => llamagym.getPeftModel("embedded" as never)],
    ["The first argument of SftTrainer.create is", "a model", () => llamagym.SftTrainer.create(undefined as never)],
    ["The first argument of DpoTrainer.create is", "a model", () => preferences.DpoTrainer.create(3 as never)],
    ["The first argument of KtoTrainer.create is", "a model", () => preferences.KtoTrainer.create({} as never)],
    ["model", "a model, such as", () => new GatewayTrainer({ episodes: 1, model: "embedded" } as never)],
    ["agent", "a function", () => new GatewayTrainer({ episodes: 1, model: adapted, agent: "x" } as never)],
    ["tasks", "a list", () => new GatewayTrainer({ episodes: 1, model: adapted, tasks: "abc" } as never)],
    [
      "sessionReward",
      "a function",
      () => new GatewayTrainer({ episodes: 1, model: adapted, sessionReward: 1 } as never),
    ],
    ["quantize", "8 or 4", () => open({ quantize: "4" })],
    ["backwardPrecision", '"float32" or "int8"', () => open({ backwardPrecision: "int4" })],
    ["gradientCheckpointing", "true or false", () => open({ gradientCheckpointing: "yes" })],
    ["threads", "an integer >= 1", () => open({ threads: 0 })],
    ["maxNumSequences", "an integer >= 1", () => open({ maxNumSequences: "8" })],
    ["splitSpecialTokens", "true or false", () => open({ splitSpecialTokens: 0 })],
    ["revision", "a non-empty string", () => open({ revision: 3 })],
    ["tokenizer", "an object", () => open({ tokenizer: "gpt2" })],
    ["stopTokenIds", "a list", () => model.generate("a", { stopTokenIds: 3 as never })],
    ["ignoreEos", "true or false", () => model.generate("a", { ignoreEos: "false" as never })],
    ["adapter", "true or false", () => model.generate("a", { adapter: "mine" as never })],
    ["tools", "a list", () => model.generate(messages, { tools: {} as never })],
    ["variables", "an object", () => model.generate(messages, { variables: [] as never })],
    ["chatTemplate", "is for messages", () => model.generate("a", { chatTemplate: "{{ 1 }}" })],
    ["contextOverflow", '"error" or "drop-oldest"', () => model.score("a", ["b"], { contextOverflow: "x" as never })],
    ["Continuations", "a list of texts", () => model.score("a", "b" as never)],
    ["99999", "is not a token of this model", () => model.score("a", [[99_999]])],
    ["now", "a valid Date", () => model.tokenizer.renderChat(messages, { now: "today" as never })],
    ["addSpecialTokens", "true or false", () => model.tokenizer.encode("a", { addSpecialTokens: 1 as never })],
    ["skipSpecialTokens", "true or false", () => model.tokenizer.decode([1], { skipSpecialTokens: "no" as never })],
    ["dtype", '"F32", "F16" or "BF16"', () => model.savePretrained("never", { dtype: "bfloat16" as never })],
    ["maxShardBytes", "an integer >= 1", () => model.savePretrained("never", { maxShardBytes: 0.5 })],
    ["format", '"peft", "merged"', () => model.export("never", { format: "safetensors" as never })],
    [
      "mode",
      '"train" or "eval"',
      () => llamagym.evaluate(agent(), "Blackjack-v1", { episodes: 1, mode: "test" as never }),
    ],
    ["mode", '"sync" or "worker"', () => envs.makeVector("Blackjack-v1", { numEnvs: 1, mode: "async" as never })],
    [
      "onFailure",
      '"stop" or "continue"',
      () => envs.makeVector("Blackjack-v1", { numEnvs: 1, onFailure: "skip" as never }),
    ],
    [
      "numWorkers",
      'the mode "worker"',
      () => envs.makeVector("Blackjack-v1", { numEnvs: 2, numWorkers: 2, mode: "sync" }),
    ],
    ["options", "an object", () => make("Blackjack-v1").reset({ options: 3 as never })],
    ["TimeLimit", "an object of options", () => new envs.TimeLimit(new CoinEnv(), 10 as never)],
    ["maxEpisodeSteps", "an integer >= 1", () => new envs.TimeLimit(new CoinEnv(), { maxEpisodeSteps: "10" as never })],
    ["TimeLimit", "needs the option `maxEpisodeSteps`", () => new envs.TimeLimit(new CoinEnv(), {} as never)],
    ["RepeatAction", "needs the option `numRepeats`", () => new envs.RepeatAction(new CoinEnv(), undefined as never)],
    ["reward", "a function", () => new envs.TransformReward(new CoinEnv(), { reward: 1 as never })],
    ["minReward", "a number", () => new envs.ClipReward(new CoinEnv(), { minReward: NaN })],
    ["maxReward", "a number", () => new envs.ClipReward(new CoinEnv(), { maxReward: "1" as never })],
    [
      "normalizeTime",
      "true or false",
      () => new envs.TimeAwareObservation(limited(), { normalizeTime: "no" as never }),
    ],
    [
      "padding",
      '"reset" or "zero"',
      () => new envs.FrameStackObservation(new CoinEnv(), { stackSize: 2, padding: "zeros" as never }),
    ],
    ["bufferLength", "an integer >= 1", () => new envs.RecordEpisodeStatistics(new CoinEnv(), { bufferLength: -1 })],
    ["onEpisode", "RecordEpisode needs", () => new envs.RecordEpisode(new CoinEnv(), {} as never)],
    ["Autoreset", "wraps an environment", () => new envs.Autoreset(undefined as never)],
    ["Autoreset", "a promise: await it", () => new envs.Autoreset(envs.openEnv("Blackjack-v1") as never)],
    ["timeout", "a number > 0", () => envs.checkEnv(llamagym.make("Blackjack-v1"), { timeout: -1 })],
    [
      "maxEpisodeSteps",
      "an integer >= 1",
      () => llamagym.register({ ...registration, maxEpisodeSteps: "10" as never }),
    ],
    ["rewardThreshold", "a number", () => llamagym.register({ ...registration, rewardThreshold: NaN })],
    ["port", "an integer >= 0 and <= 65535", () => new GatewayTrainer({ episodes: 1, model: adapted, port: 70_000 })],
    ["apiKey", "a non-empty string", () => new GatewayTrainer({ episodes: 1, model: adapted, apiKey: "" })],
  ])("of the wrong kind is refused: %s must be %s", async (name, expected, call) => {
    const error: unknown = await (async () => call())().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect((error as Error).message).toContain(name);
    expect((error as Error).message).toContain(expected);
  });

  it("is not given if it is undefined", () => {
    expect(() => new llamagym.ReplayBuffer({ bogus: undefined } as object)).not.toThrow();
  });

  it("says what else is wrong with the arguments of a JavaScript program", async () => {
    const message = async (call: () => unknown) => {
      const error: unknown = await (async () => call())().catch((thrown: unknown) => thrown);
      return (error as Error).message;
    };
    expect(await message(() => new Tosser("embedded" as never))).toContain("is a model, such as await Auto");
    expect(await message(() => new Tosser(Promise.resolve(adapted) as never))).toContain("a promise: await it");
    expect(await message(() => new Tosser(adapted, {} as never))).toContain("Options are the third.");
    expect(await message(() => new llamagym.Trainer({ ...run, agent: Tosser as never }))).toContain(
      "A Trainer needs an `agent`",
    );
    expect(await message(() => new llamagym.Trainer({ ...run, agent: agent(), learningRate: 1 } as never))).toMatch(
      /no option "learningRate".*Settings of the algorithm belong to the agent/,
    );
    const trainIn = (env: unknown) => new llamagym.Trainer({ ...run, agent: agent(), env: env as never }).train();
    expect(await message(() => trainIn(new CoinEnv()))).toContain("got one environment: pass () => new MyEnv()");
    expect(await message(() => trainIn(LlamaClass))).toContain("does not extend llamagym's Env");
    expect(await message(() => trainIn(undefined))).toContain("must be an id, a class that extends Env");
    expect(await message(() => make("Blackjack-v1").reset(1 as never))).toBe(
      "reset takes an object of options, got 1.",
    );
    expect(await message(() => llamagym.AutoTokenizer.fromPretrained(undefined as never))).toContain("got undefined");
    expect(await message(() => llamagym.AutoModelForCausalLM.fromPretrained(""))).toContain("A model is a folder");
    expect(await message(() => llamagym.numberedChoice({} as never))).toContain("must be a list of texts, got {}");
  });
});

it("a class is an environment of a Trainer and of evaluate", async () => {
  const model = await llamagym.AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { threads: 1 });
  const agent = new Tosser(model);
  expect(await llamagym.evaluate(agent, CoinEnv, { episodes: 3 })).toMatchObject({ meanReturn: 1 });
  const { state } = await new llamagym.Trainer({ agent, env: CoinEnv, turns: 8, numEnvs: 4 }).train();
  expect(state.turns).toBeGreaterThanOrEqual(8);
  await model.close();
});
