import { readCounts } from "../env-options.js";
import { MultiDiscrete, Text } from "../spaces/index.js";
import { formatGuesses, TaskEnv } from "./task-env.js";
import { WORDLE_WORDS } from "./wordle-words.js";
const WORD_LENGTH = 5;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/**
 * Find a word of five letters. Each letter of a guess is marked as in its place (g), elsewhere in the
 * word (y) or not in it (-). Observation: a line per guess, "crane -yg--". Actions: any five
 * letters, a 0 to z 25. Reward: 1 for the word.
 */
export class WordleEnv extends TaskEnv {
    observationSpace;
    actionSpace = new MultiDiscrete(Array.from({ length: WORD_LENGTH }, () => LETTERS.length));
    text;
    guesses;
    constructor(options = {}) {
        super();
        const { guesses } = readCounts("Wordle", options, { guesses: [6, 1, 100] });
        this.guesses = guesses;
        this.observationSpace = new Text(guesses * (2 * WORD_LENGTH + 2), { minLength: 0, charset: `${LETTERS}- \n` });
        this.text = createWordleText(guesses);
    }
    start() {
        return { secret: this.random.choice(WORDLE_WORDS), guesses: [] };
    }
    observe({ secret, guesses }) {
        return guesses.map((guess) => `${guess} ${scoreGuess(guess, secret)}`).join("\n");
    }
    advance({ secret, guesses }, letters) {
        const guess = decodeWord(letters);
        const state = { secret, guesses: [...guesses, guess] };
        const isFound = guess === secret;
        return { state, reward: isFound ? 1 : 0, terminated: isFound || state.guesses.length >= this.guesses };
    }
}
/** Marks each letter with g, y or -; a letter gets y at most as often as it occurs in the word outside its g positions. */
export function scoreGuess(guess, secret) {
    const unmatched = Array.from(secret).filter((letter, i) => letter !== guess[i]);
    return Array.from(guess, (letter, i) => {
        if (letter === secret[i])
            return "g";
        const found = unmatched.indexOf(letter);
        if (found < 0)
            return "-";
        unmatched.splice(found, 1);
        return "y";
    }).join("");
}
function decodeWord(letters) {
    return Array.from(letters, (letter) => LETTERS[letter]).join("");
}
function createWordleText(limit) {
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
export const wordleEnvs = [
    {
        id: "Wordle-v0",
        entryPoint: (options) => new WordleEnv(options),
        summary: "find a word of five letters",
        knownReturns: { random: 0, best: 1, basis: "page" },
    },
];
