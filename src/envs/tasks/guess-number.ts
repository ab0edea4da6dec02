import { readCounts } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { parseLastNumber } from "../text-parsing.js";
import { TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";

/** Options of `GuessNumberEnv`. */
export interface GuessNumberOptions {
  /** The secret is in 1 to highest. */
  readonly highest?: number;
  /** Guesses per episode. */
  readonly guesses?: number;
}

/** The feedback so far limits the secret to low to high. */
type GuessNumberState = { readonly secret: number; readonly low: number; readonly high: number; readonly left: number };

/**
 * Guess a number with feedback of higher or lower. Observation: the lowest and highest number still
 * possible, guesses left. Actions: the numbers. Reward: 1 for the number.
 */
export class GuessNumberEnv extends TaskEnv<Int32Array, number, GuessNumberState> {
  override readonly observationSpace: Box<"int32">;
  override readonly actionSpace: Discrete;
  override readonly text: TextInterface<Int32Array, number>;
  private readonly highest: number;
  private readonly guesses: number;

  constructor(options: GuessNumberOptions = {}) {
    super();
    const { highest, guesses } = readCounts("GuessNumber", options, { highest: [100, 2, 1e9], guesses: [7, 1, 1e9] });
    this.highest = highest;
    this.guesses = guesses;
    this.observationSpace = new Box([1, 1, 0], [highest, highest, guesses], { dtype: "int32" });
    this.actionSpace = new Discrete(highest, { start: 1 });
    this.text = createGuessNumberText(highest);
  }

  protected override start(): GuessNumberState {
    return { secret: this.random.integers(1, this.highest + 1), low: 1, high: this.highest, left: this.guesses };
  }

  protected override observe({ low, high, left }: GuessNumberState): Int32Array {
    return Int32Array.of(low, high, left);
  }

  protected override advance(state: GuessNumberState, guess: number): TaskStep<GuessNumberState> {
    const { secret } = state;
    const left = state.left - 1;
    const low = guess < secret ? Math.max(state.low, guess + 1) : state.low;
    const high = guess > secret ? Math.min(state.high, guess - 1) : state.high;
    if (guess === secret)
      return { state: { secret, low: secret, high: secret, left }, reward: 1, terminated: true, isSuccess: true };
    return { state: { secret, low, high, left }, reward: 0, terminated: left === 0, isSuccess: false };
  }
}

function createGuessNumberText(highest: number): TextInterface<Int32Array, number> {
  return {
    systemPrompt: `Guess a whole number from 1 to ${highest}. After each guess you are told where it can still be. Answer with a number alone.`,
    formatObservation: ([low, high, left]) =>
      `The number is ${low === high ? `${low}` : `between ${low} and ${high}`}. ${left} ${left === 1 ? "guess" : "guesses"} left. What is your guess?`,
    parseAction: (completion) => {
      const guess = parseLastNumber(completion);
      return guess !== undefined && Number.isInteger(guess) && guess >= 1 && guess <= highest ? guess : undefined;
    },
    formatAction: String,
  };
}

export const guessNumberEnvs: readonly Registration[] = [
  {
    id: "GuessNumber-v0",
    entryPoint: (options) => new GuessNumberEnv(options),
    summary: "find a number by halving",
    knownReturns: { random: 0.07, best: 1, basis: "page" },
  },
];
