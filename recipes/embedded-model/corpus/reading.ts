import type { RandomStream } from "../../../src/core/random/random-stream.js";
import type { Exchange } from "./conversation.js";
import { yesOrNo, type ObservationSample } from "./games/game.js";
import {
  roundToStyle,
  roundHalfAwayFromZero,
  signWord,
  sideWord,
  sizeWord,
  drawSpread,
  formatNumber,
} from "./number-text.js";
import { drawUnnamedNumbers, drawPair, makeQuantity, shortName, type Quantity } from "./quantities.js";
import { drawBound, drawStatement } from "./statements.js";

type QuestionSampler = (quantities: readonly Quantity[], random: RandomStream) => Exchange;

/**
 * Kinds of questions about numbers that a text tells; a kind that stands twice is asked twice as
 * often.
 */
const ABOUT_ONE: readonly QuestionSampler[] = [
  askCopy,
  askSign,
  askSize,
  askRound,
  askSide,
  askSide,
  askStatement,
  askStatement,
  askStatement,
  askStatement,
];
const ABOUT_TWO: readonly QuestionSampler[] = [
  ...ABOUT_ONE,
  askStatement,
  askStatement,
  askStatement,
  askLarger,
  askFarther,
  askSum,
];

/** A question about what a moment shows; undefined for one that tells nothing to ask about. */
export function askAbout(
  { quantities = [], facts = [] }: ObservationSample,
  random: RandomStream,
): Exchange | undefined {
  const aboutFact = facts.length > 0 && (quantities.length === 0 || random.random() < 0.6);
  if (aboutFact) {
    const { skill, question, answer } = random.choice(facts);
    return { skill, user: question, assistant: answer };
  }
  if (quantities.length === 0) return undefined;
  return random.choice(quantities.length > 1 ? ABOUT_TWO : ABOUT_ONE)(quantities, random);
}

const isShort = (random: RandomStream) => random.random() < 0.6;

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function askCopy(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const quantity = random.choice(quantities);
  const user = isShort(random) ? `${capitalize(shortName(quantity))}?` : `What is ${quantity.name}?`;
  return { skill: "copy", user, assistant: quantity.text };
}

function askSign(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const asked = random.choice(quantities);
  const user = isShort(random) ? `Sign of ${shortName(asked)}?` : `What sign has ${asked.name}?`;
  return { skill: "sign", user, assistant: signWord(asked.value) };
}

function askSize(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const asked = random.choice(quantities);
  if (random.random() < 0.3) {
    return {
      skill: "size",
      user: `Is ${asked.name} near zero?`,
      assistant: yesOrNo(Math.abs(asked.value) < 0.05),
    };
  }
  const user = isShort(random) ? `Size of ${shortName(asked)}?` : `How large is ${asked.name}?`;
  return { skill: "size", user, assistant: sizeWord(asked.value) };
}

/** "Pole angle above or below +0.05?" */
function askSide(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const asked = random.choice(quantities);
  const bound = drawBound(asked.value, asked.range, asked.style, random);
  const user = `${capitalize(shortName(asked))} above or below ${formatNumber(bound, asked.style)}?`;
  return { skill: "threshold", user, assistant: sideWord(asked.value, bound) };
}

const PLACES = ["a whole number", "one decimal", "two decimals", "three decimals"];

function askRound(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { name, text, style } = random.choice(quantities);
  const decimals = random.integers(0, Math.max(1, style.decimals));
  return {
    skill: "round",
    user: `Round ${name} to ${PLACES[decimals]}.`,
    assistant: formatNumber(roundHalfAwayFromZero(text, decimals), { decimals, plus: style.plus }),
  };
}

function askStatement(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { skill, subject, complement, signs, holds } = drawStatement(quantities, random);
  const user = isShort(random) ? `${capitalize(signs)}?` : `Is ${subject} ${complement}?`;
  return { skill, user, assistant: yesOrNo(holds(quantities)) };
}

function askLarger(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [a, b] = drawPair(quantities, random);
  const wantsLarger = random.random() < 0.5;
  const first = wantsLarger ? a.value >= b.value : a.value <= b.value;
  return {
    skill: "compare",
    user: `Which is ${wantsLarger ? "larger" : "smaller"}, ${a.name} or ${b.name}?`,
    assistant: shortName(first ? a : b),
  };
}

function askFarther(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [a, b] = drawPair(quantities, random);
  return {
    skill: "compare",
    user: `Which is farther from zero, ${a.name} or ${b.name}?`,
    assistant: shortName(Math.abs(a.value) >= Math.abs(b.value) ? a : b),
  };
}

/** The sum or difference of two quantities, to one decimal where they have more. */
function askSum(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [a, b] = drawPair(quantities, random);
  const minus = random.random() < 0.3;
  const decimals = Math.max(a.style.decimals, b.style.decimals);
  const style = { decimals: Math.min(1, decimals), plus: a.style.plus };
  const ask = decimals > style.decimals ? "About how much" : "How much";
  return {
    skill: "add",
    user: `${ask} is ${a.name} ${minus ? "minus" : "plus"} ${b.name}?`,
    assistant: formatNumber(minus ? a.value - b.value : a.value + b.value, style),
  };
}

const ABOUT_NUMBERS: readonly QuestionSampler[] = [
  askSign,
  askSize,
  askRound,
  askSide,
  askLarger,
  askFarther,
  askSum,
  askSum,
  askStatement,
  askStatement,
  askStatement,
];

/** A question about numbers that stand in the question itself. */
export function askAboutNumbers(random: RandomStream): Exchange {
  const numbers = drawUnnamedNumbers(2, random);
  if (random.random() < 0.5) numbers[1] = drawSimilarNumber(numbers[0], random);
  return random.choice(ABOUT_NUMBERS)(numbers, random);
}

/** Another number close to the first: comparing them takes all digits. */
function drawSimilarNumber({ value: from, style, range }: Quantity, random: RandomStream): Quantity {
  const value = roundToStyle(random.random() < 0.2 ? -from : from + drawSpread(random, range[1] / 3), style);
  return makeQuantity(formatNumber(value, style), value, range, style);
}
