import { describe, expect, it } from "vitest";
import { checkRunSize } from "./check-run-size.js";
import { resolveTrainConfig, type TrainOptions } from "./run-settings.js";

const MEMORY = 4e9;
const check = (options: Partial<TrainOptions>) =>
  checkRunSize(resolveTrainConfig({ env: "Blackjack-v1", ...options }), options, MEMORY);

describe("checkRunSize", () => {
  it.each([
    [
      { numEnvs: 1_000_000 },
      "`numEnvs` of 1,000,000 needs at least 32.0 GB of memory, but 4.0 GB are free. Set it to 125,000",
    ],
    [{ batchSize: 1e9 }, "`batchSize` of 1,000,000,000 needs at least 1000.0 GB"],
    [{ microBatchTokens: 1e9 }, "`microBatchTokens` of 1,000,000,000 needs"],
    [{ algorithm: "grpo", numGenerations: 1e9 }, "`numGenerations` of 1,000,000,000 needs"],
    [{ algorithm: "grpo", minTurns: 1e9 }, "`minTurns` of 1,000,000,000 needs"],
    [
      { batchSize: 2048, turns: 1000 },
      "`batchSize` is 2,048, but the run ends after 1,000 turns, before its first update",
    ],
    [
      { algorithm: "rloo", batchSize: 64, numGenerations: 8, episodes: 32 },
      "`batchSize` is 64, but the run ends after 32",
    ],
    [
      { algorithm: "grpo", numGenerations: 6000, episodes: 5000 },
      "`numGenerations` is 6,000, but the run ends after 5,000 episodes",
    ],
  ])("rejects %j", (options, message) => {
    expect(() => check(options)).toThrow(message);
  });

  it.each<[Partial<TrainOptions>, Partial<TrainOptions>]>([
    [{ numEnvs: 125_000 }, { numEnvs: 125_001 }],
    [
      { batchSize: 64, turns: 64 },
      { batchSize: 65, turns: 64 },
    ],
    [
      { algorithm: "grpo", numGenerations: 5, episodes: 5 },
      { algorithm: "grpo", numGenerations: 6, episodes: 5 },
    ],
  ])("accepts %j and rejects %j", (options, larger) => {
    expect(check(options)).toBeUndefined();
    expect(() => check(larger)).toThrow(/INVALID|needs at least|before its first update/);
  });

  it.each([{}, { turns: 10 }, { turns: 0 }, { algorithm: "grpo", episodes: 5 }, { batchSize: 10_000, episodes: 100 }])(
    "accepts %j, whose batch follows from other settings or is not counted in the unit of its length",
    (options) => {
      expect(check(options)).toBeUndefined();
    },
  );
});
