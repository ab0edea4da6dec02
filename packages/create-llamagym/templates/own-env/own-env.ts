/**
 * An environment with a text interface, in one file. Train in it from the command line:
 *
 *     npx llamagym train ./own-env.js
 *
 * Node 22.18 and later also run the TypeScript file itself; for earlier versions compile it first.
 */
import {
  Discrete,
  Env,
  findLastNamedAction,
  register,
  type JsonValue,
  type ResetOptions,
  type ResetResult,
  type StepResult,
  type TextInterface,
} from "llamagym/envs";

const COLORS = ["red", "green", "blue"];
const CUPS = ["left", "middle", "right"];

const text: TextInterface<number, number> = {
  systemPrompt: "A ball lies under one of three cups, and its color tells which. Answer left, middle or right.",
  formatObservation: (color) => `The ball is ${COLORS[color]}. Where is it?`,
  parseAction: (completion) => findLastNamedAction(completion, CUPS),
  formatAction: (action) => CUPS[action] ?? "",
  choices: CUPS,
};

/**
 * Find the ball: each color always lies under the same cup. Observation: the color. Reward: 1 for
 * the right cup.
 */
export class CupsEnv extends Env<number, number> {
  override readonly observationSpace = new Discrete(COLORS.length);
  override readonly actionSpace = new Discrete(CUPS.length);
  override readonly text = text;
  private color: number | null = null;

  override reset({ seed }: ResetOptions = {}): ResetResult<number> {
    this.reseed(seed);
    this.color = this.random.integers(0, COLORS.length);
    return { observation: this.color, info: {} };
  }

  override step(action: number): StepResult<number> {
    this.checkAction(action);
    if (this.color === null) throw this.notResetError();
    const cup = (this.color + 1) % CUPS.length;
    return { observation: this.color, reward: action === cup ? 1 : 0, terminated: true, truncated: false, info: {} };
  }

  protected override saveState(): JsonValue {
    return this.color;
  }

  protected override loadState(color: JsonValue): void {
    this.color = color as number | null;
  }
}

register({
  id: "Cups-v0",
  entryPoint: () => new CupsEnv(),
  summary: "find the ball by its color",
  knownReturns: { random: 1 / 3, best: 1, basis: "exact" },
  expert: () => (color) => ((color as number) + 1) % CUPS.length,
});
