import { readCounts } from "../env-options.js";
import { MultiDiscrete, Text } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { formatGuesses, TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";

const WORD_LENGTH = 5;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/** Common English words of five letters, in alphabetical order. */
export const WORDLE_WORDS: readonly string[] = `
about above actor adult after again agent agree ahead alarm album alert alike alive allow alone along alter among
anger angle ankle apart apple apron arena argue arise array aside aware awful bacon badge baker basic basin batch
beach beard beast begin being below bench berry birth black blade blame blank blast blaze blend blind block blood
bloom board boast bonus boost booth brain brake brand brass brave bread break brick bride brief bring broad broom
brown brush build bunch burst cabin cable camel candy cargo carry catch cause cedar chain chair chalk charm chart
chase cheap check cheek cheer chess chest chief child chill choir chord civil claim class clean clear clerk click
cliff climb clock close cloth cloud clown coach coast color coral couch count court cover crack craft crane crash
cream crime crisp cross crowd crown crude curve cycle daily dairy dance death decay delay dense depth diary dirty
ditch donor doubt dough draft drain drama dream dress drift drill drink drive eager eagle early earth eight elbow
elder elect empty enemy enjoy enter equal error essay event every exact exist extra fable faith false fancy feast
fence ferry fever field fifth fight final first flame flash fleet flesh float flock flood floor flour fluid focus
force forge forty forum found frame fresh front frost fruit funny giant glass globe glory glove grace grade grain
grand grant grape graph grass grave great green greet grief grill group guard guess guest guide habit happy harsh
heart heavy hedge honey horse hotel house human humor ideal image index inner input issue ivory jewel joint judge
juice knife knock label labor large laser later laugh layer learn lemon level light limit linen liver local logic
loose lucky lunch magic major maple march marry match mayor medal mercy merit metal minor mixed model money month
moral motor mount mouse mouth movie music naval nerve never night noble noise north novel nurse ocean offer olive
onion orbit order organ other outer owner paint panel paper party pasta patch peace pearl phase phone photo piano
piece pilot pitch place plain plane plant plate point polar porch pound power press price pride prime print prize
proof proud pulse punch pupil queen quest quick quiet quote radio raise ranch range rapid ratio reach ready realm
rebel reign relax reply right rigid rival river robot rough round route royal rural salad sauce scale scene scope
score sense serve seven shade shake shape share sharp sheep sheet shelf shell shift shine shirt shock shore short
shout sight silky skill skirt sleep slice slide slope small smart smile smoke snake solar solid solve sorry sound
south space spare spark speak speed spell spend spice spine spoon sport staff stage stair stamp stand stare start
state steam steel stick stone store storm story stove straw strip study style sugar sunny super sweet swing sword
table taste teach thank theme thick thing third thorn three throw tiger tight timer title toast today tooth topic
torch total touch tough towel tower trace track trade trail train treat trend trial tribe trick truck truly trunk
trust truth twice uncle under union unity until upper urban usual valid value video virus visit vital vivid voice
wagon waste watch water wheat wheel where white whole woman world worry worth wound wrist write wrong yield young
youth`
  .trim()
  .split(/\s+/);

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
    const terminated = isFound || state.guesses.length >= this.guesses;
    return { state, reward: isFound ? 1 : 0, terminated, isSuccess: isFound };
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
