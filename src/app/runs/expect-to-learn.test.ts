import { describe, expect, it } from "vitest";
import { Discrete, Env, findLastNamedAction, registry, type ResetOptions } from "../../envs.js";
import "../../text-world/index.js";
import { make } from "../../envs/registry/make.js";
import { expectToLearn } from "./expect-to-learn.js";
import { probeEnv } from "./probe-env.js";

const COLORS = ["red", "green", "blue"];
const CUPS = ["left", "middle", "right"];

/** Each color always lies under the same cup; each broken environment overrides one thing. */
class CupsEnv extends Env<number, number> {
  override readonly observationSpace = new Discrete(3);
  override readonly actionSpace = new Discrete(3);
  override readonly text = {
    systemPrompt: "A ball lies under one of three cups, and its color tells which.",
    formatObservation: (color: number) => this.describe(color),
    parseAction: (completion: string) => findLastNamedAction(completion, CUPS),
    formatAction: (action: number) => CUPS[action],
    choices: CUPS,
  };
  protected color = 0;

  override reset({ seed }: ResetOptions = {}) {
    this.reseed(seed);
    this.color = this.drawColor();
    return { observation: this.color, info: {} };
  }

  override step(action: number) {
    const reward = this.rewardOf((this.color + 1) % 3 === action);
    return { observation: this.color, reward, terminated: this.isOver, truncated: false, info: {} };
  }

  protected readonly isOver: boolean = true;
  protected describe(color: number): string {
    return `The ball is ${COLORS[color]}. Where is it?`;
  }
  protected drawColor(): number {
    return this.random.integers(0, 3);
  }
  protected rewardOf(isRight: boolean): number {
    return isRight ? 1 : 0;
  }
  protected override saveState() {
    return this.color;
  }
  protected override loadState(color: never): void {
    this.color = color;
  }
}

class WrongSign extends CupsEnv {
  protected override rewardOf(isRight: boolean): number {
    return isRight ? -1 : 0;
  }
}
class ConstantObservation extends CupsEnv {
  protected override describe(): string {
    return "Where is the ball?";
  }
}
class UnreadAction extends CupsEnv {
  protected override rewardOf(): number {
    return this.random.integers(0, 2);
  }
}
class Endless extends CupsEnv {
  protected override readonly isOver = false;
}
class IgnoredSeed extends CupsEnv {
  protected override drawColor(): number {
    return Math.floor(Math.random() * 3);
  }
}

const options = { reward: 0.9, minutes: 0.5, train: { turns: 3000, sftWarmStart: "none", threads: 1 } } as const;

describe("expectToLearn", () => {
  it("passes an environment that can be learned, and returns what was reached", async () => {
    const { reward, random, turns } = await expectToLearn(() => new CupsEnv(), { reward: 0.9, minutes: 2 });
    expect(reward).toBeGreaterThanOrEqual(0.9);
    expect(random).toBeCloseTo(1 / 3, 0);
    expect(turns).toBeGreaterThan(0);
  }, 200_000);

  it.each([
    [WrongSign, /was not learned.*returned 0: check the sign/],
    [ConstantObservation, /was not learned.*the agent cannot tell states apart/],
  ])(
    "finds what training does not reach: %o",
    async (Broken, message) => {
      const short = { ...options, train: { ...options.train, turns: 512 } };
      await expect(expectToLearn(() => new Broken(), short)).rejects.toThrow(message);
    },
    200_000,
  );

  it.each([
    [UnreadAction, /`step` does not read its action/],
    [Endless, /have not ended after 20000 steps/],
    [IgnoredSeed, /ignores the seed/],
  ])("finds what random play shows, without training: %o", async (Broken, message) => {
    await expect(expectToLearn(() => new Broken(), options)).rejects.toThrow(message);
  });

  it("refuses options without a meaning", async () => {
    await expect(expectToLearn(() => new CupsEnv(), { minutes: 0 })).rejects.toThrow(/`minutes` must be a number > 0/);
    await expect(expectToLearn("Unknown-v0")).rejects.toThrow(/Unknown/);
  });
});

it("random play finds no fault of the built-in environments", async () => {
  const ids = registry.all().filter(({ id }) => !id.startsWith("ExpectToLearn") && make(id).text !== undefined);
  expect(ids.length).toBeGreaterThan(10);
  const faults: string[] = [];
  for (const { id } of ids) {
    const env = make(id);
    await probeEnv(env, 1, { maxSeconds: 0.5 }).catch((error: unknown) => faults.push(`${id}: ${String(error)}`));
    await env.close();
  }
  expect(faults).toEqual([]);
}, 600_000);
