import { afterEach, describe, expect, it, vi } from "vitest";
import { Env } from "../env.js";
import { make } from "../registry/make.js";
import { Box, Discrete, MultiBinary, type Space } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { Wrapper } from "../wrapper.js";
import { ClipAction } from "./action.js";
import { PassiveEnvChecker } from "./passive-env-checker.js";

/** Takes any action, as environments without `checkAction` do. */
class TakesAll extends Env<number, unknown> {
  static steps = 0;
  override readonly observationSpace = new Discrete(2);
  constructor(override readonly actionSpace: Space<unknown>) {
    super();
  }
  override reset() {
    return { observation: 0, info: {} };
  }
  override step() {
    return { observation: 5 + TakesAll.steps++, reward: 0, terminated: false, truncated: false, info: {} };
  }
}

async function stepAll(space: Space, actions: readonly unknown[]): Promise<readonly string[]> {
  const warnings: string[] = [];
  const env = new PassiveEnvChecker(new TakesAll(space), { warn: (message) => warnings.push(message) });
  await env.reset();
  for (const action of actions) await env.step(action);
  return warnings.filter((message) => message.includes("action"));
}

describe("PassiveEnvChecker", () => {
  afterEach(() => vi.restoreAllMocks());

  it.each([
    [new Discrete(2), [0, 1, "left", 7], '"left" is not in Discrete(2)'],
    [new Discrete(2), [NaN, "left"], "NaN is not in Discrete(2)"],
    [new MultiBinary(2), [[1, 0], "10"], '"10" is not in MultiBinary'],
  ])("warns once of an action that is none of %s", async (space, actions, problem) => {
    const warnings = await stepAll(space, actions);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(`The action given to step() is not within the action space: ${problem}`);
  });

  it("leaves numbers outside of a box, and no action, to the environment", async () => {
    expect(await stepAll(new Box(-1, 1), [[3]])).toEqual([]);
    expect(await stepAll(new Discrete(2), [undefined])).toEqual([]);
  });

  it("prints a warning once for all copies of an environment, whatever value it names", async () => {
    TakesAll.steps = 0;
    const print = vi.spyOn(console, "warn").mockReturnValue();
    for (let copy = 0; copy < 3; copy++) {
      const env = new PassiveEnvChecker(new TakesAll(new Discrete(2)));
      await env.reset();
      await env.step(0);
    }
    expect(print.mock.calls.map(([message]) => message as string)).toEqual([
      "<TakesAll>: The observation given by step() is not within the observation space: 5 is not in Discrete(2).",
    ]);
  });

  it("refuses a wrapper with another space and the text of the environment in it", () => {
    const text: TextInterface<number, unknown> = {
      systemPrompt: "Say 0 or 1.",
      formatObservation: String,
      formatAction: String,
      parseAction: Number,
    };
    class Spoken extends TakesAll {
      override readonly text = text;
    }
    class Doubled extends Wrapper {
      override readonly observationSpace = new Discrete(4);
    }
    class Silent extends Doubled {
      override readonly text = undefined;
    }
    const inner = new Spoken(new Discrete(2));
    expect(() => new PassiveEnvChecker(new Wrapper(new Doubled(inner)))).toThrow(
      /Doubled has another observationSpace than the environment in it.*Set `text`/,
    );
    expect(new PassiveEnvChecker(new Wrapper(inner)).text).toBe(text);
    expect(new PassiveEnvChecker(new Silent(inner)).text).toBeUndefined();
  });

  it("takes the text that a wrapper of actions sets although it widens their space", () => {
    const pendulum = make("Pendulum-v1");
    const clipped = new ClipAction(pendulum as Env<Float32Array, Float32Array>);
    expect(clipped.actionSpace.equals(pendulum.actionSpace)).toBe(false);
    expect(pendulum.text).toBeDefined();
    expect(new PassiveEnvChecker(clipped).text).toBe(pendulum.text);
  });
});
