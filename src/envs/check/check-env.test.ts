import { describe, expect, it } from "vitest";
import { Env, type ResetOptions, type ResetResult, type StepResult } from "../env.js";
import type { JsonValue } from "../json.js";
import { make } from "../registry/make.js";
import { Box } from "../spaces/box.js";
import { Discrete } from "../spaces/discrete.js";
import type { Space } from "../spaces/space.js";
import { Tuple } from "../spaces/tuple.js";
import type { TextForm } from "../text-form.js";
import { checkEnv } from "./check-env.js";

/** A walk on a line that keeps every rule; each broken environment breaks one. */
class WalkEnv extends Env<Float32Array, number> {
  override readonly observationSpace: Space<Float32Array> = new Box([-10, 0], [10, 1]);
  override readonly actionSpace: Space<number> = new Discrete(2);
  override readonly text: TextForm<Float32Array, number> | undefined = walkText;
  protected position = 0;
  protected steps = 0;

  override reset({ seed }: ResetOptions = {}): ResetResult<Float32Array> {
    this.reseed(seed);
    this.position = this.random.uniform(-1, 1);
    this.steps = 0;
    return { observation: this.observe(), info: {} };
  }

  override step(action: number): StepResult<Float32Array> {
    this.checkAction(action);
    this.steps++;
    this.position += (action === 1 ? 1 : -1) * this.random.random();
    const terminated = Math.abs(this.position) > 5;
    return { observation: this.observe(), reward: -1, terminated, truncated: false, info: { steps: this.steps } };
  }

  protected observe(): Float32Array {
    return Float32Array.of(Math.max(-10, Math.min(10, this.position)), 0.5);
  }

  protected override saveState(): JsonValue {
    return [this.position, this.steps];
  }

  protected override loadState(state: JsonValue): void {
    [this.position, this.steps] = state as [number, number];
  }
}

const walkText: TextForm<Float32Array, number> = {
  systemPrompt: "Walk.",
  formatObservation: ([position]) => `You are at ${position.toFixed(2)}.`,
  parseAction: (reply) => ({ left: 0, right: 1 })[reply],
  formatAction: (action) => ["left", "right"][action],
  choices: ["left", "right"],
};

class NoActionSpace extends WalkEnv {
  override readonly actionSpace = undefined as unknown as Discrete;
}
class ListAsSpace extends WalkEnv {
  override readonly observationSpace = [1, 2] as unknown as Box;
}
class EmptyTuple extends WalkEnv {
  override readonly observationSpace = new Tuple([]) as unknown as Box;
}
class ResetGivesObservation extends WalkEnv {
  override reset(options?: ResetOptions) {
    return super.reset(options).observation as unknown as ResetResult<Float32Array>;
  }
}
class ResetWithoutInfo extends WalkEnv {
  override reset(options?: ResetOptions) {
    return { observation: super.reset(options).observation } as ResetResult<Float32Array>;
  }
}
class OutsideTheSpace extends WalkEnv {
  protected override observe() {
    return Float32Array.of(11, 0.5);
  }
}
class WrongLength extends WalkEnv {
  protected override observe() {
    return Float32Array.of(0);
  }
}
class PlainArray extends WalkEnv {
  protected override observe() {
    return [0, 0.5] as unknown as Float32Array;
  }
}
class NoReseed extends WalkEnv {
  override reset(): ResetResult<Float32Array> {
    return super.reset({});
  }
}
class OneSeed extends WalkEnv {
  override reset({ seed }: ResetOptions = {}): ResetResult<Float32Array> {
    super.reset({ seed: seed === undefined ? undefined : 123 });
    return { observation: this.observe(), info: {} };
  }
}
class MathRandom extends WalkEnv {
  override reset(options?: ResetOptions): ResetResult<Float32Array> {
    super.reset(options);
    this.position = Math.random();
    return { observation: this.observe(), info: {} };
  }
}
class MathRandomStep extends WalkEnv {
  override step(action: number): StepResult<Float32Array> {
    return { ...super.step(action), reward: Math.random() };
  }
}
class NoOptions extends WalkEnv {
  override reset(options: ResetOptions = {}): ResetResult<Float32Array> {
    if (options.options !== undefined) throw new Error("no options, please");
    return super.reset(options);
  }
}
class FiveTuple extends WalkEnv {
  override step(action: number) {
    return Object.values(super.step(action)) as unknown as StepResult<Float32Array>;
  }
}
class StepWithoutReward extends WalkEnv {
  override step(action: number) {
    return { ...super.step(action), reward: undefined, observation: undefined } as unknown as StepResult<Float32Array>;
  }
}
class LeavesTheSpace extends WalkEnv {
  override step(action: number) {
    return { ...super.step(action), observation: Float32Array.of(99, 99) };
  }
}
class StepGivesNothing extends WalkEnv {
  override step() {
    return undefined as unknown as StepResult<Float32Array>;
  }
}
class StepThrows extends WalkEnv {
  override step(): StepResult<Float32Array> {
    throw new Error("out of cards");
  }
}
class CountsOn extends WalkEnv {
  private count = 0;
  override step(action: number): StepResult<Float32Array> {
    return { ...super.step(action), info: { count: this.count++ } };
  }
}
class TruncatesAtOnce extends WalkEnv {
  override step(action: number): StepResult<Float32Array> {
    return { ...super.step(action), truncated: true };
  }
}
class OneBuffer extends WalkEnv {
  private readonly buffer = new Float32Array(2);
  protected override observe() {
    this.buffer.set(super.observe());
    return this.buffer;
  }
}
class OneInfo extends WalkEnv {
  private readonly details = { list: [1] };
  override step(action: number): StepResult<Float32Array> {
    return { ...super.step(action), info: { details: this.details } };
  }
}
class ForgetsPosition extends WalkEnv {
  protected override saveState(): JsonValue {
    return [0, this.steps];
  }
}
class NeverAnswers extends WalkEnv {
  override reset() {
    return new Promise(() => undefined) as unknown as ResetResult<Float32Array>;
  }
}
class DeafText extends WalkEnv {
  override readonly text = { ...walkText, choices: ["left", "right", "jump"] };
}
class OneWayText extends WalkEnv {
  override readonly text = { ...walkText, formatAction: () => "left" };
}
class EmptyText extends WalkEnv {
  override readonly text = { ...walkText, formatObservation: () => "" };
}
class ZeroFps extends WalkEnv {
  override readonly metadata = { renderModes: ["ansi"] as const, renderFps: 0 };
}
class RenderThrows extends WalkEnv {
  override readonly metadata = { renderModes: ["ansi"] as const, renderFps: 4 };
}

describe("checkEnv", () => {
  it("passes an environment that keeps the rules, without a warning", async () => {
    expect(await checkEnv(new WalkEnv())).toEqual({ warnings: [] });
  });

  it.each<[string, unknown, RegExp]>([
    ["an object that only looks like one", { reset() {}, step() {} }, /let its class extend llamagym's Env/],
    ["a class instead of an instance", WalkEnv, /not the class or its id/],
    ["an id", "CartPole-v1", /not the class or its id/],
    ["no action space", new NoActionSpace(), /no actionSpace/],
    ["something else as a space", new ListAsSpace(), /observationSpace is not a Space.*\[1,2\]/],
    ["an empty space", new EmptyTuple(), /empty Tuple observationSpace/],
    ["reset gives the observation alone", new ResetGivesObservation(), /reset\(\) must give \{ observation, info \}/],
    ["reset without info", new ResetWithoutInfo(), /info given by reset\(\) must be an object/],
    [
      "an observation outside the space",
      new OutsideTheSpace(),
      /reset\(\) is not within the observation space: \[11,0.5\]/,
    ],
    ["an observation too short", new WrongLength(), /not within the observation space/],
    ["a plain array for a typed one", new PlainArray(), /should be a Float32Array, actual type: Array/],
    ["a reset that drops its seed", new NoReseed(), /was not started with 123.*this\.reseed\(seed\)/],
    [
      "a reset that always takes one seed",
      new OneSeed(),
      /same state after reset\(\{ seed: 123 \}\) and reset\(\{ seed: 456 \}\)/,
    ],
    ["Math.random in reset", new MathRandom(), /two reset\(\{ seed: 123 \}\) differ.*Math\.random/],
    ["Math.random in step", new MathRandomStep(), /rewards of the same step differ.*this\.random/],
    [
      "a reset that refuses options",
      new NoOptions(),
      /reset\(\{ options: \{\} \}\) threw an error: no options, please/,
    ],
    ["Gymnasium's tuple from step", new FiveTuple(), /step\(\) gave an array of 5: give an object/],
    ["a step without observation", new StepWithoutReward(), /observation given by step\(action\) is undefined/],
    ["a step that leaves the space", new LeavesTheSpace(), /step\(action\) is not within the observation space/],
    ["a step that gives nothing", new StepGivesNothing(), /step\(\) must give/],
    ["a step that throws", new StepThrows(), /step\(action\) threw an error: out of cards/],
    ["something kept from episode to episode", new CountsOn(), /infos of the same step differ.*leaves something/],
    ["a step counter that is not set back", new TruncatesAtOnce(), /first step is truncated.*step counter/],
    [
      "one buffer for all observations",
      new OneBuffer(),
      /observation of a reset\(\) and of a later step\(\) share memory/,
    ],
    ["one object in all infos", new OneInfo(), /info of a step\(\) and of a later step\(\) share memory/],
    [
      "a field that is not saved",
      new ForgetsPosition(),
      /after getState\(\) and after setState\(\) differ.*leaves out a field/,
    ],
    ["a promise that never resolves", new NeverAnswers(), /reset\(\) did not answer within 200 ms/],
    ["a choice that its parser does not know", new DeafText(), /does not understand the choice "jump"/],
    ["two actions with one name", new OneWayText(), /wrote 1 as "left", which text\.parseAction\(\) reads as 0/],
    ["an empty prompt", new EmptyText(), /formatObservation\(\) must give a text/],
    ["no frames a second", new ZeroFps(), /renderFps must be a number above 0, got 0/],
    [
      "a declared mode that is not there",
      new RenderThrows(),
      /render\("ansi"\) threw an error: RenderThrows cannot render "ansi"/,
    ],
  ])("refuses: %s", async (_, env, message) => {
    await expect(checkEnv(env, { timeout: 200 })).rejects.toThrow(message);
  });

  const step = (change: object) =>
    new (class extends WalkEnv {
      override step(action: number): StepResult<Float32Array> {
        return { ...super.step(action), ...change };
      }
    })();

  it.each<[string, Env, RegExp]>([
    ["a wrapped environment", make("FrozenLake-v1"), /is wrapped/],
    ["done instead of terminated", step({ done: false, terminated: undefined }), /old API: say `terminated`/],
    ["a number for a boolean", step({ terminated: 0 }), /`terminated` to be a boolean, actual type: number/],
    ["a text as reward", step({ reward: "1" }), /reward given by step\(\) must be a number, actual type: string/],
    ["a reward that is not a number", step({ reward: NaN }), /NaN value/],
    ["an infinite reward", step({ reward: Infinity }), /infinite value/],
    [
      "no text form",
      new (class extends WalkEnv {
        override readonly text = undefined;
      })(),
      /no text form/,
    ],
    [
      "a seed method",
      new (class extends WalkEnv {
        seed() {}
      })(),
      /seed\(\) method, which nothing calls/,
    ],
    [
      "no bounds",
      new (class extends WalkEnv {
        override readonly observationSpace = new Box(-Infinity, Infinity, { shape: [2] });
      })(),
      /no lower bound/,
    ],
    [
      "equal bounds",
      new (class extends WalkEnv {
        override readonly observationSpace = new Box([-10, 0.5], [10, 0.5]);
      })(),
      /low equals its high/,
    ],
    ["a wide action range", make("Pendulum-v1").unwrapped, /symmetric range within \[-1, 1\]/],
    [
      "no way to save",
      new (class extends WalkEnv {
        protected override saveState(): JsonValue {
          throw new Error("not savable");
        }
      })(),
      /cannot be resumed within an episode: not savable/,
    ],
    [
      "no frames a second",
      new (class extends WalkEnv {
        override readonly metadata = { renderModes: ["ansi"] as const };
        override render() {
          return "";
        }
      })(),
      /renderFps is not declared/,
    ],
    [
      "an image of another kind",
      new (class extends WalkEnv {
        override readonly metadata = { renderModes: ["rgb_array"] as const, renderFps: 4 };
        override render() {
          return "";
        }
      })(),
      /should give \{ width, height, data \}/,
    ],
    [
      "a second close that throws",
      new (class extends WalkEnv {
        private closed = false;
        override close() {
          if (this.closed) throw new Error("closed");
          this.closed = true;
        }
      })(),
      /second close\(\) fails/,
    ],
  ])("warns of: %s", async (_, env, message) => {
    const heard: string[] = [];
    const { warnings } = await checkEnv(env, { warn: (warning) => heard.push(warning) });
    expect(warnings.join("\n")).toMatch(message);
    expect(heard).toEqual(warnings);
  });

  it("takes an asynchronous environment", async () => {
    class SlowWalk extends Env<Float32Array, number> {
      private readonly walk = new WalkEnv();
      override readonly observationSpace = this.walk.observationSpace;
      override readonly actionSpace = this.walk.actionSpace;
      override readonly text = walkText;
      override get random() {
        return this.walk.random;
      }
      override get randomSeed() {
        return this.walk.randomSeed;
      }
      override async reset(options?: ResetOptions) {
        return await Promise.resolve(this.walk.reset(options));
      }
      override async step(action: number) {
        return await Promise.resolve(this.walk.step(action));
      }
      override getState() {
        return this.walk.getState();
      }
      override setState(state: ReturnType<WalkEnv["getState"]>) {
        this.walk.setState(state);
      }
    }
    expect(await checkEnv(new SlowWalk())).toEqual({ warnings: [] });
  });
});
