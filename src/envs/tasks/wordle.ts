import { readCounts } from "../env-options.js";
import { MultiDiscrete, Text } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { formatGuesses, TaskEnv, type TaskStep } from "./task-env.js";
import { WORDLE_WORDS } from "./wordle-words.js";
import type { Registration } from "../registry/env-registry.js";

const WORD_LENGTH = 5;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/** Options of `WordleEnv`. */
export interface WordleOptions {
  /** Guesses per episode. */
  readonly guesses?: number;
}

type WordleState = { readonly secret: string; readonly guesses: readonly string[] };

/**
 * Find a word of five letters. Each letter of a guess is marked as in its place (g), elsewhere in
 * the word (y) or not in it (-). Observation: a line per guess, "crane -yg--". Actions: any five
 * letters, a 0 to z 25. Reward: 1 for the word.
 */
export class WordleEnv extends TaskEnv<string, Int32Array, WordleState> {
  override readonly observationSpace: Text;
  override readonly actionSpace = new MultiDiscrete(Array.from({ length: WORD_LENGTH }, () => LETTERS.length));
  override readonly text: TextInterface<string, Int32Array>;
  private readonly guesses: number;

  constructor(options: WordleOptions = {}) {
    super();
    const { guesses } = readCounts("Wordle", options, { guesses: [6, 1, 100] });
    this.guesses = guesses;
    this.observationSpace = new Text(guesses * (2 * WORD_LENGTH + 2), { minLength: 0, charset: `${LETTERS}- \n` });
    this.text = createWordleText(guesses);
  }

  protected override start(): WordleState {
    return { secret: this.random.choice(WORDLE_WORDS), guesses: [] };
  }

  protected override observe({ secret, guesses }: WordleState): string {
    return guesses.map((guess) => `${guess} ${scoreGuess(guess, secret)}`).join("\n");
  }

  protected override advance({ secret, guesses }: WordleState, letters: Int32Array): TaskStep<WordleState> {
    const guess = decodeWord(letters);
    const state = { secret, guesses: [...guesses, guess] };
    const isFound = guess === secret;
    return { state, reward: isFound ? 1 : 0, terminated: isFound || state.guesses.length >= this.guesses };
  }
}

/**
 * Marks each letter with g, y or -; a letter gets y at most as often as it occurs in the word
 * outside its g positions.
 */
export function scoreGuess(guess: string, secret: string): string {
  const unmatched = Array.from(secret).filter((letter, i) => letter !== guess[i]);
  return Array.from(guess, (letter, i) => {
    if (letter === secret[i]) return "g";
    const found = unmatched.indexOf(letter);
    if (found < 0) return "-";
    unmatched.splice(found, 1);
    return "y";
  }).join("");
}

function decodeWord(letters: Int32Array): string {
  return Array.from(letters, (letter) => LETTERS[letter]).join("");
}

function createWordleText(limit: number): TextInterface<string, Int32Array> {
  return {
    systemPrompt: `Find a secret English word of five letters in ${limit} guesses. Each guess is marked letter by letter: g right letter in the right place, y right letter in a wrong place, - letter not in the word. Answer with a word of five letters alone.`,
    formatObservation: (observation) => formatGuesses(observation, limit),
    parseAction: (completion) => {
      const guess = completion
        .toLowerCase()
        .match(/(?<![a-z])[a-z]{5}(?![a-z])/g)
        ?.at(-1);
      return guess === undefined ? undefined : Int32Array.from(guess, (letter) => LETTERS.indexOf(letter));
    },
    formatAction: decodeWord,
  };
}

export const wordleEnvs: readonly Registration[] = [
  {
    id: "Wordle-v0",
    entryPoint: (options) => new WordleEnv(options),
    summary: "find a word of five letters",
    knownReturns: { random: 0, best: 1, basis: "page" },
  },
];
