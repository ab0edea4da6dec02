import { describe, expect, it } from "vitest";
import { describeExtrapolatedRate } from "./pretrained-defaults.js";
import { resolveTrainConfig, type TrainOptions } from "./run-settings.js";

const env = "Blackjack-v1";

describe("resolveTrainConfig", () => {
  it.each([
    [{ maxNewTokens: 6 }, { maxCompletionLength: 6 }],
    [{ algorithm: "rloo", maxTokens: 6 }, { maxCompletionLength: 6 }],
    [{ loadIn8bit: true }, { quantize: "8" }],
    [{ loadIn4bit: false }, { quantize: "none" }],
    [{ useTargetKl: true }, { targetKl: 0.02 }],
    [{ useTargetKl: false }, { targetKl: 0 }],
    [{ topkP: 0.5 }, { replayTopFraction: 0.5 }],
  ])("accepts the names of other systems: %j", (options, expected) => {
    expect(resolveTrainConfig({ env, ...options })).toMatchObject(expected);
  });

  it("sets entropy bonuses for the embedded model, larger for constrained completions", () => {
    const bonus = (options: Omit<TrainOptions, "env">) => resolveTrainConfig({ env, ...options }).entropyCoef;
    expect(bonus({ algorithm: "grpo", actionMode: "choices" })).toBe(0.1);
    expect(bonus({ algorithm: "grpo" })).toBe(0.01);
    expect(bonus({ algorithm: "grpo", actionMode: "regex", actionRegex: ".{1,9}" })).toBe(0.01);
    expect(bonus({ algorithm: "grpo", entropyCoef: 0.05 })).toBe(0.05);
    expect(bonus({ algorithm: "rloo", actionMode: "scored" })).toBe(0.2);
    expect(bonus({ algorithm: "reinforce", model: "another" })).toBe(0);
    expect(bonus({ actionMode: "choices" })).toBe(0.3);
    expect(bonus({})).toBe(0.03);
  });

  it("has separate defaults for choices of a pretrained model, which given settings replace", () => {
    const choices = { env, model: "another", actionMode: "choices" } as const;
    const config = resolveTrainConfig(choices);
    expect(config).toMatchObject({ batchSize: 4096, gamma: 0.99, stateBaseline: true, layersToTransform: "last-4" });
    expect(config.episodes).toBeUndefined();
    expect(resolveTrainConfig({ ...choices, layersToTransform: "all", batchSize: 64 })).toMatchObject({
      layersToTransform: "all",
      batchSize: 64,
      miniBatchSize: 64,
    });
    for (const other of [{ actionMode: "free" }, { algorithm: "grpo" }, { tuning: "full" }] as const)
      expect(resolveTrainConfig({ ...choices, ...other }).layersToTransform).toBeUndefined();
  });

  it.each([
    ["HuggingFaceTB/SmolLM2-135M-Instruct", 5e-4],
    ["models/SmolLM2-135M-Instruct.Q4_1.gguf", 5e-4],
    ["distilbert/distilgpt2", 5e-4],
    ["unknown", 5e-4],
    ["Qwen/Qwen2.5-0.5B-Instruct", 3e-4],
    ["TinyLlama/TinyLlama-1.1B-Chat-v1.0", 2.2e-4],
    ["meta-llama/Llama-2-7b-hf", 1e-4],
  ])("lowers the default learning rate of larger models: %s", (model, rate) => {
    const choices = { env, model, actionMode: "choices" } as const;
    const config = resolveTrainConfig(choices);
    expect(config.learningRate).toBe(rate);
    expect(describeExtrapolatedRate(config) !== undefined).toBe(rate !== 5e-4);
    const given = resolveTrainConfig({ ...choices, learningRate: 1e-3 });
    expect(given.learningRate).toBe(1e-3);
    expect(describeExtrapolatedRate(given)).toBeUndefined();
  });

  it("adds no defaults to a run that is resumed", () => {
    const saved = { env, model: "another", actionMode: "choices", batchSize: 16, turns: 32 } as const;
    expect(resolveTrainConfig(saved, { isResolved: true })).toMatchObject({
      learningRate: 1e-5,
      maxGradNorm: undefined,
      layersToTransform: undefined,
    });
  });

  it.each<Omit<TrainOptions, "env">>([
    {},
    { actionMode: "choices", model: "somewhere" },
    { algorithm: "grpo", maxCompletionLength: 5 },
    { algorithm: "reinforce", tuning: "full", numGenerations: 1 },
    { algorithm: "ppo", valueHead: "mlp", model: "somewhere" },
  ])("resolves a resolved config (%j) to itself", (options) => {
    const config = resolveTrainConfig({ env, ...options });
    expect(resolveTrainConfig(config)).toEqual(config);
  });

  it.each<[Omit<TrainOptions, "env">, string]>([
    [{ maxCompletionLength: 5, maxNewTokens: 8 }, "`maxNewTokens` sets `maxCompletionLength`, which is also given"],
    [{ useTargetKl: 0.02 }, "`useTargetKl` must be true or false, got 0.02. Set `targetKl` to choose the value."],
    [{ algorithm: "grpo", valueHead: "mlp" }, "`valueHead` is for algorithms with a value head, but GRPO has none"],
    [{ algorithm: "rloo", valueHeadDropout: 0.1 }, "`valueHeadDropout` is for algorithms with a value head"],
    [{ tuning: "full", r: 8 }, '`r` is a setting of the adapter, but tuning "full" trains no adapter'],
    [{ tuning: "full", backwardPrecision: "int8" }, '`tuning` "full" freezes none'],
    [{ evalSteps: 2 }, "`evalSteps` needs episodes to evaluate"],
    [{ evalEpisodes: 2, loadBestModelAtEnd: true }, "set `evalSteps`"],
    [{ evalEpisodes: 2, earlyStoppingPatience: 3 }, "`earlyStoppingPatience` compares evaluations during training"],
    [{ evalEpisodes: 2, rewardThreshold: 1 }, "`rewardThreshold` compares evaluations during training"],
    [{ quantize: "4", backwardPrecision: "int8" }, "does not apply to the weights of quantize 4"],
    [{ algorithm: "ppo", numGenerations: 4 }, "numGenerations is a setting of grpo, rloo, reinforce"],
    [{ algorithm: "grpo", numGenerations: 1 }, "`numGenerations` must be an integer >= 2"],
    [{ algorithm: "grpo", batchSize: 10, numGenerations: 4 }, "Use 12, or another group size"],
    [{ algorithm: "grpo", episode: 4 } as never, "Did you mean episodes?"],
  ])("rejects %j", (options, message) => {
    expect(() => resolveTrainConfig({ env, ...options })).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(message) as string }),
    );
  });
});
