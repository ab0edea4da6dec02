import { describe, expect, it } from "vitest";
import { grpoSettings, resolveGrpoConfig, type GrpoOptions } from "./settings.js";

describe("resolveGrpoConfig", () => {
  it("has TRL 1.16's defaults, and ORLLLaM's learning rate", () => {
    expect(resolveGrpoConfig()).toMatchObject({
      numGenerations: 8,
      numIterations: 1,
      learningRate: 1e-5,
      lrSchedulerType: "linear",
      maxGradNorm: 1,
      lossType: "dapo",
      importanceSamplingLevel: "token",
      epsilon: 0.2,
      epsilonHigh: 0.2,
      delta: undefined,
      beta: 0,
      useBiasCorrectionKl: true,
      sapoTemperaturePos: 1,
      sapoTemperatureNeg: 1.05,
      vespoKPos: 2,
      vespoLambdaPos: 3,
      vespoKNeg: 3,
      vespoLambdaNeg: 2,
      offPolicyMaskThreshold: undefined,
      topEntropyQuantile: 1,
      entropyCoef: 0,
      scaleRewards: "group",
      multiObjectiveAggregation: "sum_then_normalize",
      maskTruncatedCompletions: false,
      maxCompletionLength: 512,
    });
    for (const { source } of Object.values(grpoSettings)) expect(source).toMatch(/TRL|ORLLLaM/);
  });

  it("clips symmetrically by default", () => {
    expect(resolveGrpoConfig({ epsilon: 0.1 }).epsilonHigh).toBe(0.1);
    expect(resolveGrpoConfig({ epsilon: 0.1, epsilonHigh: 0.3 }).epsilonHigh).toBe(0.3);
  });

  it("rounds an update to whole groups", () => {
    expect(resolveGrpoConfig({ numGenerations: 6 }).batchSize).toBe(12);
    expect(resolveGrpoConfig({ batchSize: 10, grouping: "batch" }).batchSize).toBe(10);
  });

  it("resolves the baseline from grouping and returns", () => {
    expect(resolveGrpoConfig()).toMatchObject({ grouping: "start", baseline: "step", returns: "return-to-go" });
    expect(resolveGrpoConfig({ returns: "episode-return" }).baseline).toBe("group");
    expect(resolveGrpoConfig({ grouping: "observation" }).baseline).toBe("group");
    expect(resolveGrpoConfig({ baseline: "batch" }).scaleRewards).toBe("batch");
    expect(resolveGrpoConfig({ baseline: "none" }).scaleRewards).toBe("none");
  });

  it.each<GrpoOptions>([
    {},
    { numGenerations: 6, epsilonHigh: 0.3, lossType: "cispo" },
    { returns: "episode-return", baseline: "batch", rewardWeights: [1, 2] },
  ])("is idempotent (%j)", (options) => {
    const config = resolveGrpoConfig(options);
    expect(resolveGrpoConfig(config)).toEqual(config);
  });

  it.each<[object, string]>([
    [{ batchSize: 12 }, "GRPO's batchSize is 12, which groups of 8 (numGenerations) do not divide. Use 16,"],
    [
      { returns: "episode-return", baseline: "step" },
      'returns "episode-return" gives all turns of an episode the same return',
    ],
    [{ grouping: "observation", baseline: "batch" }, "conflict; omit one of them"],
    [{ baseline: "none", scaleRewards: "group" }, 'GRPO\'s baseline "none" does not look at the group'],
    [{ numGenerations: 1 }, "`numGenerations` must be an integer >= 2, got 1."],
    [{ lossType: "ppo" }, '`lossType` must be "grpo", "bnpo", "dr_grpo", "dapo", '],
    [{ topEntropyQuantile: 0 }, "`topEntropyQuantile` must be a number > 0 and <= 1, got 0."],
    [{ losstype: "grpo" }, `GRPO has no setting "losstype". Did you mean lossType?`],
    [{ delta: 1.5, lossType: "cispo" }, `GRPO's delta is read by lossType grpo, bnpo, dr_grpo, dapo, luspo only`],
    [{ vespoKPos: 1 }, `GRPO's vespoKPos is read by lossType vespo only, and lossType is "dapo".`],
  ])("rejects %j", (options, message) => {
    expect(() => resolveGrpoConfig(options as GrpoOptions)).toThrow(
      expect.objectContaining({
        code: "INVALID_ARGUMENT",
        message: expect.stringContaining(message) as string,
      }),
    );
  });
});
