import { readCounts } from "../env-options.js";
import { MultiDiscrete, Text } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { formatGuesses, TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";

const NUM_DIGITS = 4;
/** "1234: 1 bulls, 2 cows" */
const MAX_LINE_LENGTH = 24;

/** Options of `BullsAndCowsEnv`. */
export interface BullsAndCowsOptions {
  /** Guesses per episode. */
  readonly guesses?: number;
}

type BullsAndCowsState = { readonly secret: string; readonly guesses: readonly string[] };

/**
 * Find a number of four different digits. Each guess returns its bulls (right digits in the right
 * place) and cows (right digits elsewhere). Observation: a line per guess, "1234: 1 bulls, 2 cows".
 * Actions: four digits. Reward: 1 for the number.
 */
export class BullsAndCowsEnv extends TaskEnv<string, Int32Array, BullsAndCowsState> {
  override readonly observationSpace: Text;
  override readonly actionSpace = new MultiDiscrete(Array.from({ length: NUM_DIGITS }, () => 10));
  override readonly text: TextInterface<string, Int32Array>;
  private readonly guesses: number;

  constructor(options: BullsAndCowsOptions = {}) {
    super();
    const { guesses } = readCounts("BullsAndCows", options, { guesses: [10, 1, 100] });
    this.guesses = guesses;
    this.observationSpace = new Text(guesses * MAX_LINE_LENGTH, { minLength: 0, charset: "0123456789: bulscow,\n" });
    this.text = createBullsAndCowsText(guesses);
  }

  protected override start(): BullsAndCowsState {
    return { secret: this.random.sampleIndices(10, NUM_DIGITS).join(""), guesses: [] };
  }

  protected override observe({ secret, guesses }: BullsAndCowsState): string {
    const lines = guesses.map((guess) => {
      const { bulls, cows } = compareDigits(guess, secret);
      return `${guess}: ${bulls} bulls, ${cows} cows`;
    });
    return lines.join("\n");
  }

  protected override advance({ secret, guesses }: BullsAndCowsState, digits: Int32Array): TaskStep<BullsAndCowsState> {
    const guess = Array.from(digits).join("");
    const isFound = guess === secret;
    const state = { secret, guesses: [...guesses, guess] };
    const terminated = isFound || state.guesses.length >= this.guesses;
    return { state, reward: isFound ? 1 : 0, terminated, isSuccess: isFound };
  }
}

/** Counts the bulls and cows of a guess; each digit of the secret counts once. */
export function compareDigits(guess: string, secret: string): { bulls: number; cows: number } {
  const bulls = Array.from(guess).filter((digit, i) => digit === secret[i]).length;
  const shared = Array.from(secret).filter((digit) => guess.includes(digit)).length;
  return { bulls, cows: shared - bulls };
}

function createBullsAndCowsText(limit: number): TextInterface<string, Int32Array> {
  return {
    systemPrompt: `Find a secret number of ${NUM_DIGITS} different digits in ${limit} guesses. Each guess is answered: bulls are right digits in the right place, cows are right digits in a wrong place. Answer with ${NUM_DIGITS} digits alone.`,
    formatObservation: (observation) => formatGuesses(observation, limit),
    parseAction: (completion) => {
      const guess = completion.match(/(?<!\d)\d{4}(?!\d)/g)?.at(-1);
      return guess === undefined ? undefined : Int32Array.from(guess, Number);
    },
    formatAction: (digits) => Array.from(digits).join(""),
  };
}

export const bullsAndCowsEnvs: readonly Registration[] = [
  {
    id: "BullsAndCows-v0",
    entryPoint: (options) => new BullsAndCowsEnv(options),
    summary: "find a number from hints",
    knownReturns: { random: 0.001, best: 1, basis: "page" },
  },
];
