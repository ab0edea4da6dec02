import { describe, expect, it } from "vitest";
import { make } from "./registry/make.js";
import { Discrete } from "./spaces/index.js";
import { ActionWrapper, ObservationWrapper, RewardWrapper, Wrapper } from "./wrapper.js";

const cartPole = () => make<Float32Array, number>("CartPole-v1");

// Wrappers as they are written in Gymnasium.
class Penalty extends Wrapper<Float32Array, number> {
  override async reset() {
    const result = await super.reset({ seed: 1 });
    return { ...result, info: { ...result.info, isPenalized: true } };
  }

  override async step(action: number) {
    const result = await super.step(action);
    return { ...result, reward: result.reward - 0.5 };
  }
}
class Mirrored extends ObservationWrapper<Float32Array, number> {
  override observation(observation: Float32Array) {
    return observation.map((value) => -value);
  }
}
class Swapped extends ActionWrapper<Float32Array, number> {
  override action(action: number) {
    return 1 - action;
  }
}
class Doubled extends RewardWrapper<Float32Array, number> {
  override reward(reward: number) {
    return 2 * reward;
  }
}
class Named extends ActionWrapper<Float32Array, number> {
  override readonly actionSpace = new Discrete(2, { start: 1 });

  override action(action: number) {
    return action - 1;
  }
}

describe("a wrapper", () => {
  it("passes through what a subclass does not override", async () => {
    const [wrapper, plain] = [new Penalty(cartPole()), cartPole()];
    expect(wrapper.actionSpace.equals(plain.actionSpace)).toBe(true);
    expect(wrapper.text?.systemPrompt).toBe(plain.text?.systemPrompt);
    const [first, expected] = [await wrapper.reset(), await plain.reset({ seed: 1 })];
    expect(first).toEqual({ ...expected, info: { ...expected.info, isPenalized: true } });
    expect(await wrapper.step(1)).toEqual({ ...(await plain.step(1)), reward: 0.5 });
  });

  it("needs no space for values of the same kind", async () => {
    const plain = cartPole();
    const wrapper = new Doubled(new Mirrored(new Swapped(cartPole())));
    const [first, expected] = [await wrapper.reset({ seed: 2 }), await plain.reset({ seed: 2 })];
    expect(first.observation).toEqual(expected.observation.map((value) => -value));
    const [step, plainStep] = [await wrapper.step(0), await plain.step(1)];
    expect(step.observation).toEqual(plainStep.observation.map((value) => -value));
    expect(step.reward).toBe(2);
    expect(wrapper.observationSpace.equals(plain.observationSpace)).toBe(true);
    // The text of the environment reads observations and actions that mean something else.
    expect(wrapper.text).toBeUndefined();
  });

  it("takes a space from a field", async () => {
    const wrapper = new Named(cartPole());
    expect(wrapper.actionSpace.contains(2)).toBe(true);
    await wrapper.reset({ seed: 1 });
    expect((await wrapper.step(2)).terminated).toBe(false);
  });
});
