import { describe, expect, it } from "vitest";
import { normalizeKeys, resolveSearchSpace } from "./search-space.js";

describe("resolveSearch", () => {
  it("accepts lists, ranges, and names in camel, kebab and snake case", () => {
    const search = resolveSearchSpace({
      "learning-rate": { min: 1e-4, max: 1e-2, scale: "log" },
      entropy_coef: [0, 0.1],
      batchSize: { min: 8, max: 64, points: 3 },
      algorithm: ["ppo", "grpo"],
      rewardScaling: [true, false],
    });
    expect(Object.entries(search)).toEqual([
      ["learningRate", { min: 1e-4, max: 1e-2, scale: "log" }],
      ["entropyCoef", [0, 0.1]],
      ["batchSize", { min: 8, max: 64, scale: "linear", points: 3 }],
      ["algorithm", ["ppo", "grpo"]],
      ["rewardScaling", [true, false]],
    ]);
    expect(resolveSearchSpace(search)).toEqual(search);
  });

  it.each([
    ["learningRate", "1e-4..1e-2:log", { min: 1e-4, max: 1e-2, scale: "log" }],
    ["learningRate", "1e-4..1e-2:log:5", { min: 1e-4, max: 1e-2, scale: "log", points: 5 }],
    ["gamma", "0.9 .. 1", { min: 0.9, max: 1, scale: "linear" }],
    ["gamma", "0.9..1:3", { min: 0.9, max: 1, scale: "linear", points: 3 }],
    ["entropyCoef", "0, 0.01,1e-1", [0, 0.01, 0.1]],
    ["onlineSft", "true,false", [true, false]],
    ["actionMode", "choices,scored", ["choices", "scored"]],
    ["model", "../a,../b", ["../a", "../b"]],
  ])("reads the short form of %s: %s", (name, text, expected) => {
    expect(resolveSearchSpace({ [name]: text })).toEqual({ [name]: expected });
  });

  it.each([
    [{}, "needs settings to search"],
    [{ learningrat: [1] }, 'A run has no setting "learningrat". Did you mean learningRate?'],
    [{ seed: [1, 2] }, "seed cannot be searched: every trial is trained with each of the sweep's seeds"],
    [{ evalEpisodes: [1, 2] }, "evalEpisodes cannot be searched"],
    [{ learningRate: [1e-3], "learning-rate": [1e-4] }, "learningRate appears twice in search, in two spellings"],
    [{ learningRate: [] }, "search.learningRate is empty"],
    [{ learningRate: [1e-3, 1e-3] }, "search.learningRate has 0.001 twice"],
    [{ learningRate: [1e-3, -1] }, "`learningRate` must be a number >= 0, got -1"],
    [{ learningRate: ["fast"] }, "`learningRate` must be a number"],
    [{ learningRate: [null] }, "search.learningRate has a value that is missing"],
    [{ learningRate: 1e-3 }, "search.learningRate must be a list of values or a range"],
    [{ learningRate: { min: 1e-3 } }, "needs both min and max"],
    [{ learningRate: { min: 1e-2, max: 1e-3 } }, "its min must be below its max"],
    [{ learningRate: { min: -1, max: 1 } }, "`learningRate` must be a number >= 0, got -1"],
    [{ learningRate: { min: 0, max: 1, scale: "log" } }, "its min must be above 0"],
    [{ learningRate: { min: 0, max: 1, scale: "cubic" } }, '`scale` must be "linear" or "log"'],
    [{ learningRate: { min: 0, max: 1, steps: 4 } }, 'search.learningRate has no setting "steps"'],
    [{ learningRate: { min: 0, max: 1, points: 1 } }, "`points` must be an integer >= 2"],
    [{ batchSize: { min: 8, max: 10.5 } }, "`batchSize` must be an integer"],
    [{ algorithm: { min: 0, max: 1 } }, "algorithm is not a number, so it has no range"],
    [{ algorithm: ["pppo"] }, "A run's algorithm must be one of"],
    [{ learningRate: "1e-4..1e-2:lg" }, "Did you mean log?"],
    [{ learningRate: "1e-4..high" }, 'search.learningRate takes numbers, not "high"'],
    [{ learningRate: "1,,2" }, "search.learningRate has an empty value"],
    [{ onlineSft: "yes,no" }, "`onlineSft` must be true or false"],
  ])("rejects %j", (search, message) => {
    expect(() => resolveSearchSpace(search as never)).toThrow(message);
  });
});

it("normalizeKeys keeps camel case", () => {
  expect(normalizeKeys("train", { "max-new-tokens": 1, top_p: 2, "load-4-bit": 3, r: 4 })).toEqual({
    maxNewTokens: 1,
    topP: 2,
    load4Bit: 3,
    r: 4,
  });
});
