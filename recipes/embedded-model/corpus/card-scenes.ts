import { make } from "../../../src/envs/index.js";
import type { RandomStream } from "../../../src/tensor/random.js";
import type { Quantity } from "./quantities.js";
import { paraphrase, type Fact, type Scene } from "./scene.js";

const OPENINGS = [
  "You are an expert blackjack player.",
  "You play blackjack.",
  "You are playing blackjack against a dealer.",
  "Play blackjack and win.",
];
const DETAILS = [
  "Come closer to 21 than the dealer without going over it.",
  "A sum above 21 loses at once.",
  "You see your sum, the dealer's card and whether you have a usable ace.",
  "Each turn you take a card or stop.",
];

/** What the two actions may be called: stop, and take a card. */
const WORDS: readonly (readonly [string, string])[] = [
  ["stay", "hit"],
  ["stay", "hit"],
  ["stick", "hit"],
  ["stand", "hit"],
  ["stop", "draw"],
  ["Action: 0", "Action: 1"],
];

const WHOLE = { decimals: 0, plus: false };

/** Draws scenes of Blackjack, over all hands, in the environment's words and in others. */
export function cardScenes(): ((random: RandomStream) => Scene)[] {
  const form = make("Blackjack-v1").text!;
  return [
    (random) => {
      const usable = random.random() < 0.4;
      const sum = usable ? random.integers(12, 22) : random.integers(4, 22);
      const dealer = random.integers(1, 11);
      const own = random.random() < 0.5;
      const words = own ? WORDS[0] : random.choice(WORDS);
      const bare = !own && words === WORDS[0] && random.random() < 0.3;
      const text = own
        ? form.formatObservation([sum, dealer, usable ? 1 : 0], {})
        : otherText(sum, dealer, usable, words, random);
      return {
        game: "Blackjack-v1",
        system: own ? form.systemPrompt : bare ? random.choice(OPENINGS) : paraphrase(OPENINGS, DETAILS, words, random),
        text,
        replies: words,
        ...(/[Dd]ealer/.test(text)
          ? { quantities: quantities(sum, dealer), facts: facts(sum, dealer, usable) }
          : { quantities: quantities(sum, 1) }),
      };
    },
  ];
}

function otherText(
  sum: number,
  dealer: number,
  usable: boolean,
  words: readonly string[],
  random: RandomStream,
): string {
  const card = dealer === 1 ? "ace" : `${dealer}`;
  const ace = usable ? "a" : "no";
  const text = random.choice([
    `Your current total is ${sum}`,
    `Your current total is ${sum}. The dealer shows ${card}. You have ${ace} usable ace.`,
    `You: ${sum}. Dealer: ${dealer}. You have ${usable ? "an" : "no"} ace.`,
    `Your sum is ${sum}, the dealer shows ${card}, usable ace: ${usable ? "yes" : "no"}.`,
    `Sum ${sum}, dealer ${dealer}, usable ace ${usable ? 1 : 0}.`,
  ]);
  return random.random() < 0.3 ? `${text.replace(/[^.]$/, "$&.")} ${words[1]} or ${words[0]}?` : text;
}

function quantities(sum: number, dealer: number): Quantity[] {
  return [
    { name: "your total", limit: 21, value: sum, text: `${sum}`, style: WHOLE },
    ...(dealer === 1 ? [] : [{ name: "the dealer's card", limit: 11, value: dealer, text: `${dealer}`, style: WHOLE }]),
  ];
}

function facts(sum: number, dealer: number, usable: boolean): Fact[] {
  const yes = (truth: boolean) => (truth ? "yes" : "no");
  return [
    { skill: "look up", question: "Do you have a usable ace?", answer: yes(usable) },
    { skill: "look up", question: "Does the dealer show an ace?", answer: yes(dealer === 1) },
    { skill: "add", question: "How much is missing to 21?", answer: `${21 - sum}` },
    { skill: "add", question: "What is your total with a 5 more?", answer: `${sum + 5}` },
    { skill: "threshold", question: "Would a 10 take you over 21?", answer: yes(sum + 10 > 21 && !usable) },
  ];
}
