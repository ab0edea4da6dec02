import { describe, expect, it } from "vitest";
import * as broken from "../../../test/fixtures/envs/broken-envs.js";
import { Env, type EnvState, type KnownReturns, type ResetOptions, type StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { make, registry } from "../registry/make.js";
import { Box } from "../spaces/box.js";
import { Text } from "../spaces/text.js";
import { CalculatorEnv } from "../tasks/calculator.js";
import { checkEnv } from "./check-env.js";

const { WalkEnv, walkText } = broken;

describe("checkEnv", () => {
  it("passes a correct environment without warnings", async () => {
    expect(await checkEnv(new WalkEnv())).toEqual({ warnings: [] });
  });

  it.each<[string, unknown, RegExp]>([
    ["an object that only resembles an Env", { reset() {}, step() {} }, /make its class extend llamagym's Env/],
    ["a class instead of an instance", WalkEnv, /not the class or its id/],
    ["an id", "CartPole-v1", /not the class or its id/],
    ["no action space", new broken.NoActionSpace(), /no actionSpace/],
    ["something else as a space", new broken.ListAsSpace(), /observationSpace is not a Space.*\[1,2\]/],
    ["an empty space", new broken.EmptyTuple(), /empty Tuple observationSpace/],
    [
      "a reset that returns only the observation",
      new broken.ResetGivesObservation(),
      /reset\(\) returned .*: return an object \{ observation, info \} instead/,
    ],
    ["reset without info", new broken.ResetWithoutInfo(), /reset\(\) returned the info undefined: return an object/],
    [
      "a space in a text of letters",
      new (class extends CalculatorEnv {
        override readonly observationSpace = new Text(4000);
      })(),
      /Its charset has no " "; list all characters: new Text\(4000, /,
    ],
    [
      "an observation outside the space",
      new broken.OutsideTheSpace(),
      /reset\(\) is not within the observation space: \[11,0.5\]/,
    ],
    ["an observation too short", new broken.WrongLength(), /not within the observation space/],
    ["a plain array for a typed one", new broken.PlainArray(), /should be a Float32Array, actual type: Array/],
    ["a reset that ignores its seed", new broken.NoReseed(), /was not seeded with 123.*this\.reseed\(seed\)/],
    [
      "a reset that always takes one seed",
      new broken.OneSeed(),
      /same state after reset\(\{ seed: 123 \}\) and reset\(\{ seed: 456 \}\)/,
    ],
    ["Math.random in reset", new broken.MathRandom(), /two reset\(\{ seed: 123 \}\) differ.*Math\.random/],
    ["Math.random in step", new broken.MathRandomStep(), /rewards of the same step differ.*this\.random/],
    [
      "a reset that rejects options",
      new broken.NoOptions(),
      /reset\(\{ options: \{\} \}\) threw an error: no options, please/,
    ],
    ["Gymnasium's tuple from step", new broken.FiveTuple(), /step\(\) returned an array of 5: return an object/],
    ["a step without observation", new broken.StepWithoutReward(), /observation given by step\(action\) is undefined/],
    ["a step that leaves the space", new broken.LeavesTheSpace(), /step\(action\) is not within the observation space/],
    ["a step that returns nothing", new broken.StepGivesNothing(), /step\(\) returned undefined: return an object/],
    ["a step that throws", new broken.StepThrows(), /step\(action\) threw an error: out of cards/],
    ["state kept from episode to episode", new broken.CountsOn(), /infos of the same step differ.*keeps state/],
    ["a step counter that is not reset", new broken.TruncatesAtOnce(), /first step is truncated.*step counter/],
    [
      "one buffer for all observations",
      new broken.OneBuffer(),
      /observation of a reset\(\) and of a later step\(\) share memory/,
    ],
    ["one object in all infos", new broken.OneInfo(), /info of a step\(\) and of a later step\(\) share memory/],
    [
      "a field that is not saved",
      new broken.ForgetsPosition(),
      /after getState\(\) and after setState\(\) differ.*omits a field/,
    ],
    ["a promise that never resolves", new broken.NeverAnswers(), /reset\(\) did not return within 200 ms/],
    ["a choice that its parser rejects", new broken.DeafText(), /does not parse the choice "jump"/],
    [
      "two actions with one name",
      new broken.OneWayText(),
      /formatted 1 as "left", which text\.parseAction\(\) parses as 0/,
    ],
    ["an empty prompt", new broken.EmptyText(), /formatObservation\(\) must return non-empty text/],
    ["no frames per second", new broken.ZeroFps(), /renderFps must be a number above 0, got 0/],
    [
      "a declared mode that is not implemented",
      new broken.RenderThrows(),
      /render\("ansi"\) threw an error: RenderThrows cannot render "ansi"/,
    ],
  ])("rejects: %s", async (_, env, message) => {
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
    ["done instead of terminated", step({ done: false, terminated: undefined }), /old API: return `terminated`/],
    ["a number for a boolean", step({ terminated: 0 }), /`terminated` to be a boolean, actual type: number/],
    ["a string as reward", step({ reward: "1" }), /reward given by step\(\) must be a number, actual type: string/],
    ["a reward that is not a number", step({ reward: NaN }), /NaN value/],
    ["a reward beyond the limit", step({ reward: 1e200 }), /The reward is 1e\+200; training requires/],
    ["an infinite reward", step({ reward: Infinity }), /infinite value/],
    [
      "no text interface",
      new (class extends WalkEnv {
        override readonly text = undefined;
      })(),
      /no text interface/,
    ],
    [
      "an object in a prompt",
      new (class extends WalkEnv {
        override readonly text = { ...walkText, formatObservation: () => "You see [object Object]." };
      })(),
      /formatObservation\(\) returned a text with "\[object Object\]": write the fields/,
    ],
    [
      "a seed method",
      new (class extends WalkEnv {
        seed() {}
      })(),
      /seed\(\) method is never called/,
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
      "no frames per second",
      new (class extends WalkEnv {
        override readonly metadata = { renderModes: ["ansi"] as const };
        override render() {
          return "";
        }
      })(),
      /renderFps is not declared/,
    ],
    [
      "an image of the wrong type",
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
      /second close\(\) throws/,
    ],
  ])("warns about: %s", async (_, env, message) => {
    const heard: string[] = [];
    const { warnings } = await checkEnv(env, { warn: (warning) => heard.push(warning) });
    expect(warnings.join("\n")).toMatch(message);
    expect(heard).toEqual(warnings);
  });

  it("rejects known returns that random actions or the expert do not reproduce", async () => {
    const check = async (knownReturns: KnownReturns) => {
      const env = make({ ...registry.spec("Blackjack-v1"), knownReturns }).unwrapped;
      return checkEnv(env);
    };
    await expect(check({ random: 0.5, best: -0.0431, basis: "exact" })).rejects.toThrow(/knownReturns\.random is 0\.5/);
    await expect(check({ random: -0.3942, best: 0.9, basis: "exact" })).rejects.toThrow(
      /the expert gave a mean return/,
    );
    expect(await check({ random: -0.3942, best: -0.0431, basis: "exact" })).toEqual({ warnings: [] });
  });

  it("accepts an asynchronous environment", async () => {
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
      override setState(state: EnvState) {
        this.walk.setState(state);
      }
    }
    expect(await checkEnv(new SlowWalk())).toEqual({ warnings: [] });
  });
});
