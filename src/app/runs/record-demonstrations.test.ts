import { expect, it } from "vitest";
import { make } from "../../envs.js";
import { TransformReward } from "../../envs/wrappers/reward.js";
import { expertPolicy, recordDemonstrations } from "./record-demonstrations.js";

it.each([1e200, Infinity, Number.NaN])("refuses to record a reward of %d", async (value) => {
  const makeEnv = () => new TransformReward(make("FrozenLake-v1"), { reward: () => value });
  await expect(recordDemonstrations(makeEnv, expertPolicy, { episodes: 1 })).rejects.toMatchObject({
    code: "ENV_FAILED",
    message: expect.stringContaining(`returned the reward ${value} (number)`) as string,
  });
});
