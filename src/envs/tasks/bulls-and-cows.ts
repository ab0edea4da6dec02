import { LlamaGymError } from "../../errors.js";
import { withDefaults } from "../options.js";
import { MultiDiscrete } from "../spaces/multi-discrete.js";
import { Text } from "../spaces/text.js";
import type { TextForm } from "../text-form.js";
import { TaskEnv, type Turn } from "./task-env.js";

const DIGITS = 4;
/** "1234: 1 bulls, 2 cows" */
const LINE = 24;

export interface BullsAndCowsOptions {
  /** Guesses in an episode. */
  readonly guesses?: number;
}

type BullsAndCowsState = { readonly secret: string; readonly guesses: readonly string[] };

/**
 * Find a number of four different digits. A guess is answered with its bulls (right digits in the right place) and cows
 * (right digits elsewhere). Observation: a line for each guess, "1234: 1 bulls, 2 cows". Actions: four digits.
 * Reward: 1 for the number.
 */
export class BullsAndCowsEnv extends TaskEnv<string, Int32Array, BullsAndCowsState> {
  override readonly observationSpace: Text;
  override readonly actionSpace = new MultiDiscrete(Array.from({ length: DIGITS }, () => 10));
  override readonly text: TextForm<string, Int32Array>;
  private readonly guesses: number;

  constructor(options: BullsAndCowsOptions = {}) {
    super();
    const { guesses } = withDefaults("BullsAndCows", options, { guesses: 10 });
    if (!Number.isInteger(guesses) || guesses < 1 || guesses > 100) {
      throw new LlamaGymError("INVALID_ARGUMENT", `BullsAndCows takes 1 to 100 guesses, got ${guesses}.`);
    }
    this.guesses = guesses;
    this.observationSpace = new Text(guesses * LINE, { minLength: 0, charset: "0123456789: bulscow,\n" });
    this.text = bullsAndCowsText(guesses);
  }

  protected override start(): BullsAndCowsState {
    return { secret: this.random.sampleIndices(10, DIGITS).join(""), guesses: [] };
  }

  protected override observe({ secret, guesses }: BullsAndCowsState): string {
    const lines = guesses.map((guess) => {
      const { bulls, cows } = compareDigits(guess, secret);
      return `${guess}: ${bulls} bulls, ${cows} cows`;
    });
    return lines.join("\n");
  }

  protected override advance({ secret, guesses }: BullsAndCowsState, digits: Int32Array): Turn<BullsAndCowsState> {
    const guess = Array.from(digits).join("");
    const isFound = guess === secret;
    const state = { secret, guesses: [...guesses, guess] };
    return { state, reward: isFound ? 1 : 0, terminated: isFound || state.guesses.length >= this.guesses };
  }
}

/** How many digits of a guess are right, and in the right place or elsewhere; each of the secret's counts once. */
export function compareDigits(guess: string, secret: string): { bulls: number; cows: number } {
  const bulls = Array.from(guess).filter((digit, i) => digit === secret[i]).length;
  const shared = Array.from(secret).filter((digit) => guess.includes(digit)).length;
  return { bulls, cows: shared - bulls };
}

function bullsAndCowsText(limit: number): TextForm<string, Int32Array> {
  return {
    systemPrompt: `Find a secret number of ${DIGITS} different digits in ${limit} guesses. Each guess is answered: bulls are right digits in the right place, cows are right digits in a wrong place. Answer with ${DIGITS} digits alone.`,
    formatObservation: (observation) => {
      const left = limit - (observation === "" ? 0 : observation.split("\n").length);
      const question = `${left} ${left === 1 ? "guess" : "guesses"} left. What is your guess?`;
      return observation === "" ? question : `${observation}\n${question}`;
    },
    parseAction: (reply) => {
      const guess = reply.match(/(?<!\d)\d{4}(?!\d)/g)?.at(-1);
      return guess === undefined ? undefined : Int32Array.from(guess, Number);
    },
    formatAction: (digits) => Array.from(digits).join(""),
  };
}
