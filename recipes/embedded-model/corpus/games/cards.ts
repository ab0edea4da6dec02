import { make } from "../../../../src/envs.js";
import type { RandomStream } from "../../../../src/core/random/random-stream.js";
import { INTEGER_STYLE } from "../number-text.js";
import { makeQuantity, type Quantity } from "../quantities.js";
import { paraphrase, yesOrNo, type ScenarioSampler, type Fact } from "./game.js";

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

/** What the two actions may be called: to stop, and to take a card. */
const WORDS: readonly (readonly [string, string])[] = [
  ["stay", "hit"],
  ["stay", "hit"],
  ["stick", "hit"],
  ["stand", "hit"],
  ["stop", "draw"],
  ["Action: 0", "Action: 1"],
];

interface Hand {
  readonly sum: number;
  readonly dealer: number;
  readonly usable: boolean;
}

/** Ways to tell a hand; the first does not tell all of it. */
const HAND_TEMPLATES: readonly ((hand: Hand) => string)[] = [
  ({ sum }) => `Your current total is ${sum}`,
  ({ sum, dealer, usable }) =>
    `Your current total is ${sum}. The dealer shows ${dealer === 1 ? "ace" : dealer}. You have ${usable ? "a" : "no"} usable ace.`,
  ({ sum, dealer, usable }) => `You: ${sum}. Dealer: ${dealer}. You have ${usable ? "an" : "no"} ace.`,
  ({ sum, dealer, usable }) => `Your sum is ${sum}, the dealer shows ${dealer}, usable ace: ${yesOrNo(usable)}.`,
  ({ sum, dealer, usable }) => `Sum ${sum}, dealer ${dealer}, usable ace ${usable ? 1 : 0}.`,
];

/** Blackjack, over all hands, in the environment's words and in others. */
export function cardScenarios(): readonly ScenarioSampler[] {
  const form = make("Blackjack-v1").text!;
  const registered: ScenarioSampler = () => ({
    id: "Blackjack-v1",
    system: form.systemPrompt,
    observe: (random) => {
      const hand = drawHand(random);
      const text = form.formatObservation([hand.sum, hand.dealer, hand.usable ? 1 : 0], {});
      return { text, validCompletions: WORDS[0], quantities: quantities(hand), facts: facts(hand) };
    },
  });
  return [registered, paraphrasedBlackjack];
}

const paraphrasedBlackjack: ScenarioSampler = (random) => {
  const words = random.choice(WORDS);
  const telling = random.choice(HAND_TEMPLATES);
  const asks = random.random() < 0.3;
  // A prompt that names no actions, as LlamaGym's first example: these are the usual ones.
  const bare = words === WORDS[0] && random.random() < 0.3;
  return {
    id: "Blackjack-v1",
    system: bare ? random.choice(OPENINGS) : paraphrase(OPENINGS, DETAILS, words, random),
    observe: (random) => {
      const hand = drawHand(random);
      const told = telling(hand);
      const text = asks ? `${told.replace(/[^.]$/, "$&.")} ${words[1]} or ${words[0]}?` : told;
      const tellsAll = telling !== HAND_TEMPLATES[0];
      return tellsAll
        ? { text, validCompletions: words, quantities: quantities(hand), facts: facts(hand) }
        : { text, validCompletions: words, quantities: quantities(hand).slice(0, 1) };
    },
  };
};

function drawHand(random: RandomStream): Hand {
  const usable = random.random() < 0.4;
  return { usable, sum: usable ? random.integers(12, 22) : random.integers(4, 22), dealer: random.integers(1, 11) };
}

function quantities({ sum, dealer }: Hand): Quantity[] {
  const total = makeQuantity("your total", sum, [4, 21], INTEGER_STYLE);
  return dealer === 1 ? [total] : [total, makeQuantity("the dealer's card", dealer, [2, 10], INTEGER_STYLE)];
}

function facts({ sum, dealer, usable }: Hand): Fact[] {
  return [
    { skill: "look up", question: "Do you have a usable ace?", answer: yesOrNo(usable) },
    { skill: "look up", question: "Usable ace?", answer: yesOrNo(usable) },
    { skill: "look up", question: "Does the dealer show an ace?", answer: yesOrNo(dealer === 1) },
    { skill: "add", question: "How much is missing to 21?", answer: `${21 - sum}` },
    { skill: "add", question: "What is your total with a 5 more?", answer: `${sum + 5}` },
  ];
}
