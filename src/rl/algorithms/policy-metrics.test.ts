import { expect, it } from "vitest";
import { scoreCompletions } from "../../../test/support/turns.js";
import { rewardMetrics } from "./policy-metrics.js";

it("logs TRL 1.16's reward metrics: mean and deviation (n - 1) of the whole update, and groups without signal", () => {
  const completions = scoreCompletions([[0], [0], [1], [3], [Number.NaN], [1]], { groupSize: 2 });
  const hasSignal = [false, false, true, true, false, false];
  expect(rewardMetrics(completions, hasSignal)).toEqual({
    reward: 1,
    reward_std: expect.closeTo(Math.sqrt((1 + 1 + 0 + 4 + 0) / 4), 12) as number,
    frac_reward_zero_std: expect.closeTo(2 / 3, 12) as number,
  });
});
