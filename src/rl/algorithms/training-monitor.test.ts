import { describe, expect, it } from "vitest";
import type { Metrics } from "./learner.js";
import { TrainingMonitor } from "./training-monitor.js";

function warningsFor(updates: readonly Metrics[], entropyFloor = 0.05): string[] {
  const told: string[] = [];
  const watch = new TrainingMonitor({ entropyFloor, onWarning: (message) => void told.push(message) });
  for (const metrics of updates) watch.check(metrics);
  return told;
}

const times = (count: number, metrics: Metrics) => Array.from({ length: count }, () => metrics);

describe("TrainingMonitor", () => {
  it("gives no warning for a healthy run", () => {
    const healthy = { entropy: 0.4, kl: 0.5, frac_reward_zero_std: 0.5, num_skipped_steps: 0 };
    expect(warningsFor(times(20, { ...healthy, "completions/clipped_ratio": 0.1 }))).toEqual([]);
    expect(warningsFor(times(20, {}))).toEqual([]);
  });

  it("warns once of a low entropy", () => {
    expect(warningsFor([{ entropy: 0.06 }, { entropy: 0.04 }, { entropy: 0.01 }])).toEqual([
      expect.stringContaining("entropy fell to 0.040 nats"),
    ]);
    expect(warningsFor([{ entropy: 0.001 }])).toHaveLength(1);
    expect(warningsFor([{ entropy: 0 }], 0)).toEqual([]);
  });

  it("warns of a KL divergence that jumps, not of one that rises slowly", () => {
    const rising = Array.from({ length: 40 }, (_, i) => ({ kl: 0.1 * i }));
    expect(warningsFor(rising)).toEqual([]);
    expect(warningsFor([...times(10, { "objective/kl": 0.1 }), { "objective/kl": 0.6 }])).toEqual([
      expect.stringContaining("jumped to 0.60 nats, from 0.10"),
    ]);
    expect(warningsFor([...times(10, { kl: 0.001 }), { kl: 0.05 }])).toEqual([]);
    expect(warningsFor([...times(10, { kl: 0.1 }), { kl: 0.6, num_reference_syncs: 0 }])).toEqual([]);
  });

  it("warns of an update's KL separately from the KL to the reference", () => {
    const calm = { "policy/approxkl_avg": 0.03, "objective/kl": 0.2 };
    const jump = { "policy/approxkl_avg": 0.39, "objective/kl": 1.2 };
    expect(warningsFor([...times(10, calm), jump, jump])).toEqual([
      expect.stringContaining("from the reference policy jumped to 1.2 nats"),
      expect.stringContaining("(approxkl) jumped to 0.39 nats, from 0.030"),
    ]);
    expect(warningsFor([...times(10, { "policy/approxkl_avg": 0.01 }), { "policy/approxkl_avg": 0.2 }])).toHaveLength(
      1,
    );
  });

  it("warns of groups without a learning signal over several updates", () => {
    expect(warningsFor([...times(4, { frac_reward_zero_std: 1 }), { frac_reward_zero_std: 0.9 }])).toEqual([]);
    expect(warningsFor(times(9, { frac_reward_zero_std: 1 }))).toHaveLength(1);
    expect(warningsFor(times(5, { frac_reward_zero_std: 1, "rollout/ep_rew_mean": -1.23456 }))).toEqual([
      expect.stringContaining("equal, -1.235 in the mean, so there was no learning signal"),
    ]);
  });

  it("warns of skipped steps and of truncated completions", () => {
    expect(warningsFor(times(3, { num_skipped_steps: 2, "completions/clipped_ratio": 0.75 }))).toEqual([
      expect.stringContaining("2 optimizer steps"),
      expect.stringContaining("75 %"),
    ]);
  });
});
