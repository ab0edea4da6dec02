import { describe, expect, it } from "vitest";
import { ppoSettings, resolvePpoConfig, type PpoOptions } from "./settings.js";

describe("resolvePpoConfig", () => {
  it("has LlamaGym's and TRL 0.7's defaults", () => {
    expect(resolvePpoConfig()).toEqual({
      batchSize: 16,
      miniBatchSize: 16,
      numPpoEpochs: 4,
      learningRate: 1e-5,
      lrSchedulerType: "constant",
      lrMinRate: 0,
      lrNumCycles: 1,
      lrPower: 1,
      lrDecayRatio: 0.1,
      adamBeta1: 0.9,
      adamBeta2: 0.999,
      adamEpsilon: 1e-8,
      maxGradNorm: undefined,
      klPenalty: "kl",
      adaptiveKl: true,
      initKlCoef: 0.2,
      klTarget: 6,
      klHorizon: 10_000,
      gamma: 1,
      lam: 0.95,
      advantageLevel: "token",
      stateBaseline: false,
      whitenRewards: false,
      whitenAdvantages: true,
      minAdvantageStd: 0,
      explorationBonus: 0,
      cliprange: 0.2,
      cliprangeValue: 0.2,
      valueWarmup: 0,
      vfCoef: 0.1,
      entropyCoef: 0,
      entropySchedulerType: "constant",
      entropyMinRate: 0,
      syncRefModel: false,
      refModelMixupAlpha: 0.6,
      refModelSyncSteps: 512,
      ratioThreshold: 10,
      rewardClip: undefined,
      rewardScale: 1,
      rewardScaling: false,
      targetKl: 0,
    });
    for (const { source } of Object.values(ppoSettings)) expect(source).toMatch(/TRL|LlamaGym/);
  });

  it("overrides defaults, and treats undefined as omitted", () => {
    expect(resolvePpoConfig({ gamma: 0.99, targetKl: 0.02, lam: undefined })).toMatchObject({
      gamma: 0.99,
      targetKl: 0.02,
      lam: 0.95,
    });
  });

  it("has a state baseline for turns alone", () => {
    expect(resolvePpoConfig({ stateBaseline: true, advantageLevel: "turn" }).stateBaseline).toBe(true);
    expect(() => resolvePpoConfig({ stateBaseline: true })).toThrow('Also set advantageLevel to "turn".');
  });

  it("uses one minibatch for a small batch", () => {
    expect(resolvePpoConfig({ batchSize: 4 }).miniBatchSize).toBe(4);
    expect(resolvePpoConfig({ batchSize: 64 }).miniBatchSize).toBe(16);
  });

  it.each<[object, string]>([
    [{ batchSize: 0 }, "`batchSize` must be an integer >= 1, got 0."],
    [{ lam: 1.5 }, "`lam` must be a number >= 0 and <= 1, got 1.5."],
    [{ cliprange: Number.NaN }, "`cliprange` must be a number > 0, got NaN."],
    [{ klPenalty: "k3" }, '`klPenalty` must be "kl", "abs" or "mse", got "k3".'],
    [{ whitenRewards: 1 }, "`whitenRewards` must be true or false, got 1."],
    [{ clipRange: 0.2 }, `PPO has no setting "clipRange". Did you mean cliprange?`],
    [{ batchSize: 8, miniBatchSize: 16 }, "PPO's miniBatchSize is 16, but a batch has only 8 samples (batchSize)."],
  ])("rejects %j", (options, message) => {
    expect(() => resolvePpoConfig(options as PpoOptions)).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message }),
    );
  });

  it("lists all settings for a name without near matches", () => {
    expect(() => resolvePpoConfig({ zzz: 1 } as PpoOptions)).toThrow(/PPO has no setting "zzz". Known: batchSize, /);
  });
});
