import { describe, expect, it } from "vitest";
import { RewardScaler } from "./reward-scaler.js";

const on = { gamma: 0.5, rewardScale: 1, rewardScaling: true, rewardClip: undefined };

describe("RewardScaler", () => {
  it("divides by the root mean square of discounted returns", () => {
    const rewards = new RewardScaler(on);
    rewards.observe([{ rewards: [4, 8], bootstrap: 0 }]);
    // Returns are 4 + 0.5 * 8 and 8.
    expect(rewards.scale).toBeCloseTo(8, 12);
    expect(rewards.apply(4)).toBeCloseTo(0.5, 12);
    rewards.observe([{ rewards: [2], bootstrap: 0 }]);
    expect(rewards.scale).toBeCloseTo(Math.sqrt((64 + 64 + 4) / 3), 12);
  });

  it("bootstraps partial sequences from unscaled values", () => {
    const rewards = new RewardScaler(on);
    rewards.observe([{ rewards: [10], bootstrap: 0 }]);
    rewards.observe([{ rewards: [5], bootstrap: 1 }]);
    // The value 1 stands for 10: the return is 5 + 0.5 * 10.
    expect(rewards.scale).toBeCloseTo(10, 12);
  });

  it("does not scale returns between 0.05 and 1", () => {
    const rewards = new RewardScaler(on);
    expect(rewards.apply(0.1)).toBe(0.1);
    rewards.observe([{ rewards: [0.1, 0, -0.2], bootstrap: 0 }]);
    expect(rewards.apply(0.1)).toBe(0.1);
  });

  it("scales smaller returns up, whatever the value head says at first", () => {
    const rewards = new RewardScaler(on);
    rewards.observe([{ rewards: [0.001, -0.001], bootstrap: 0.9 }]);
    // Returns are 0.001 - 0.5 * 0.001 and -0.001.
    const size = Math.sqrt((0.0005 ** 2 + 0.001 ** 2) / 2);
    expect(rewards.scale).toBeCloseTo(size, 12);
    rewards.observe([{ rewards: [0, 0], bootstrap: 0 }]);
    expect(rewards.apply(0.001)).toBeCloseTo((0.001 * Math.SQRT2) / size, 12);
  });

  it("leaves rewards that were all 0 unscaled", () => {
    const rewards = new RewardScaler(on);
    rewards.observe([{ rewards: [0, 0], bootstrap: 0 }]);
    expect(rewards.apply(0.5)).toBe(0.5);
  });

  it("restores its state", () => {
    const rewards = new RewardScaler(on);
    rewards.observe([{ rewards: [4, 8], bootstrap: 0 }]);
    expect(new RewardScaler(on, rewards.getState()).scale).toBe(rewards.scale);
  });

  it.each([1e200, Infinity, Number.NaN])("stays finite after a bootstrap value of %d", (bootstrap) => {
    const rewards = new RewardScaler(on);
    rewards.observe([{ rewards: [4, 8], bootstrap: 0 }]);
    const before = rewards.getState();
    rewards.observe([{ rewards: [1], bootstrap }]);
    expect(rewards.getState()).toEqual(before);
  });

  it("does nothing when disabled", () => {
    const rewards = new RewardScaler({ ...on, rewardScaling: false });
    rewards.observe([{ rewards: [400], bootstrap: 0 }]);
    expect(rewards.apply(-400)).toBe(-400);
  });

  it("clips scaled rewards", () => {
    const rewards = new RewardScaler({ ...on, rewardClip: 1.5 });
    rewards.observe([{ rewards: [2], bootstrap: 0 }]);
    expect([-8, 1, 8].map((reward) => rewards.apply(reward))).toEqual([-1.5, 0.5, 1.5]);
  });
});
