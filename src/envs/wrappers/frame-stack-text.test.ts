import { describe, expect, it } from "vitest";
import { Env, make, type StepResult } from "../../envs.js";
import { Discrete } from "../spaces/index.js";
import { FrameStackText } from "./frame-stack-text.js";

const open = (stackSize = 3) => new FrameStackText(make("FrozenLake-v1", { isSlippery: false }), { stackSize });
const RIGHT = 2;

describe("FrameStackText", () => {
  it("shows the earlier observations of an episode, oldest first, and keeps the rest as it is", async () => {
    const plain = make("FrozenLake-v1", { isSlippery: false });
    const env = open();
    const first = await env.reset({ seed: 1 });
    const start = await plain.reset({ seed: 1 });
    const format = ({ observation, info }: Pick<StepResult<unknown>, "observation" | "info">) =>
      env.text.formatObservation(observation, info);
    const plainText = (result: Pick<StepResult<unknown>, "observation" | "info">) =>
      plain.text!.formatObservation(result.observation, result.info);
    expect(format(first)).toBe(plainText(start));
    const frames = [plainText(start)];
    for (const earlier of [1, 2, 2]) {
      const [stacked, expected] = [await env.step(0), await plain.step(0)];
      const { info: _, ...rest } = stacked;
      expect(rest).toMatchObject({ observation: expected.observation, reward: expected.reward, terminated: false });
      const shown = frames.slice(-earlier).map((frame, i) => {
        const age = earlier - i;
        return `${age} ${age === 1 ? "step" : "steps"} ago: ${frame}`;
      });
      expect(format(stacked)).toBe([...shown, `Now: ${plainText(expected)}`].join("\n"));
      frames.push(plainText(expected));
    }
    const again = await env.reset({ seed: 2 });
    expect(format(again)).not.toContain("ago");
    expect(env.text.choices).toEqual(plain.text!.choices);
    expect(env.text.parseAction("right")).toBe(plain.text!.parseAction("right"));
  });

  it("continues from a saved state with the same texts", async () => {
    const [env, restored] = [open(), open()];
    await env.reset({ seed: 1 });
    await env.step(RIGHT);
    restored.setState(JSON.parse(JSON.stringify(env.getState())) as ReturnType<typeof env.getState>);
    const [next, same] = [await env.step(RIGHT), await restored.step(RIGHT)];
    expect(same).toEqual(next);
    expect(restored.text.formatObservation(same.observation, same.info)).toContain("2 steps ago: ");
  });

  it("rejects an environment without a text interface, and a stack of one", () => {
    class Silent extends Env<number, number> {
      override readonly metadata = { renderModes: [] };
      override readonly text = undefined;
      override readonly observationSpace = new Discrete(1);
      override readonly actionSpace = new Discrete(1);
      override reset = () => ({ observation: 0, info: {} });
      override step = () => ({ observation: 0, reward: 0, terminated: true, truncated: false, info: {} });
    }
    expect(() => new FrameStackText(new Silent(), { stackSize: 2 })).toThrow(
      expect.objectContaining({ code: "ENV_INVALID" }),
    );
    expect(() => open(1)).toThrow("`stackSize` must be an integer >= 2, got 1.");
  });
});
