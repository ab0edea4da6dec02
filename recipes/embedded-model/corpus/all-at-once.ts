import type { RandomStream } from "../../../src/core/random/random-stream.js";
import type { Exchange } from "./conversation.js";
import {
  roundToStyle,
  roundHalfAwayFromZero,
  sideWord,
  signWord,
  sizeWord,
  drawSpread,
  formatNumber,
} from "./number-text.js";
import { drawUnnamedNumbers, shortName, type Quantity } from "./quantities.js";
import { ACTIONS, COLORS, drawName, NAMES, READINGS, sampleItems, THINGS } from "./word-lists.js";

type ExchangeSampler = (quantities: readonly Quantity[], random: RandomStream) => Exchange;

/** An instruction that is answered for each number in turn. */
function askForEach(skill: string, user: string, answer: (quantity: Quantity) => string): ExchangeSampler {
  return (quantities) => ({ skill, user, assistant: quantities.map(answer).join(", ") });
}

/** Kinds of instructions; one that stands twice is given twice as often. */
const KINDS: readonly ExchangeSampler[] = [
  askForEach("copy all", "Say all numbers.", ({ text }) => text),
  askForEach("signs of all", "Say all signs.", ({ value }) => signWord(value)),
  askForEach("sizes of all", "Say all sizes.", ({ value }) => sizeWord(value)),
  askForEach("round all", "Round all to one decimal.", ({ text, style }) =>
    formatNumber(roundHalfAwayFromZero(text, 1), { decimals: 1, plus: style.plus }),
  ),
  askSort,
  askThresholds,
  askThresholds,
  askThresholds,
  askSumSigns,
  askSumSigns,
  askSumSigns,
  askRule,
  askRule,
  askRule,
];

/** One answer for each of several numbers: much to learn from one text. */
export function askAboutAll(quantities: readonly Quantity[], random: RandomStream): Exchange {
  return random.choice(KINDS)(quantities, random);
}

function askThresholds(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const bound = drawBoundAmong(quantities, random);
  const user = `Above or below ${bound.text}?`;
  return askForEach("thresholds of all", user, ({ value }) => sideWord(value, bound.value))(quantities, random);
}

/** A bound that lies among the quantities, so that some are above and some below. */
function drawBoundAmong(quantities: readonly Quantity[], random: RandomStream): { value: number; text: string } {
  const { value, range, style } = random.choice(quantities);
  const bound = roundToStyle(random.random() < 0.2 ? 0 : value + drawSpread(random, (range[1] - range[0]) / 8), style);
  return { value: bound, text: formatNumber(bound, style) };
}

/** One word for numbers of which something is true, another for the others. */
function askRule(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [first, second] = sampleItems(ACTIONS, 2, random);
  const bound = drawBoundAmong(quantities, random);
  const { words, sumWith } = drawSum(quantities, random);
  const [condition, holds] = random.choice<readonly [string, (value: number) => boolean]>([
    [`above ${bound.text}`, (value) => value > bound.value],
    [`> ${bound.text}`, (value) => value > bound.value],
    [`< ${bound.text}`, (value) => value < bound.value],
    [`${words} > 0`, (value) => sumWith(value) > 0],
  ]);
  const user = random.choice([
    `${condition}: ${first}, else ${second}.`,
    `If ${condition} say ${first}, else ${second}.`,
  ]);
  return askForEach("rule for all", user, ({ value }) => (holds(value) ? first : second))(quantities, random);
}

function askSort(quantities: readonly Quantity[]): Exchange {
  const sorted = [...quantities].sort((a, b) => a.value - b.value);
  return { skill: "sort", user: "Sort from small to large.", assistant: sorted.map(({ text }) => text).join(", ") };
}

/**
 * A sum with each of several numbers that comes out on both sides of zero: "3 times each plus
 * -0.4".
 */
function drawSum(
  quantities: readonly Quantity[],
  random: RandomStream,
): { readonly words: string; readonly sumWith: (value: number) => number } {
  const factor = random.choice([1, 1, 2, 3, 5, 10]);
  const { value, range, style } = random.choice(quantities);
  const offset = roundToStyle(-factor * (value + drawSpread(random, (range[1] - range[0]) / 8)), style);
  const usesNamedQuantity = factor === 1 && random.random() < 0.4;
  const namedQuantity = random.choice(quantities);
  const added = usesNamedQuantity ? namedQuantity.value : offset;
  const each = factor === 1 ? "each" : `${factor} times each`;
  return {
    words: `${each} plus ${usesNamedQuantity ? shortName(namedQuantity) : formatNumber(offset, style)}`,
    // Without what binary fractions leave behind.
    sumWith: (value) => roundToStyle(factor * value + added, { decimals: 6, plus: false }),
  };
}

/** The sign of a sum with each number. */
function askSumSigns(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { words, sumWith } = drawSum(quantities, random);
  const sign = ({ value }: Quantity) => signWord(sumWith(value));
  return askForEach("signs of all sums", `Signs of ${words}?`, sign)(quantities, random);
}

/** A row of numbers without names, and questions about all of them. */
export function askAboutRow(random: RandomStream, count: number): { text: string; questions: readonly Exchange[] } {
  const numbers = drawUnnamedNumbers(random.integers(2, 10), random);
  const row = numbers.map(({ text }) => text).join(random.choice([", ", " ", "; ", "\n"]));
  return { text: `${row}\n`, questions: Array.from({ length: count }, () => askAboutAll(numbers, random)) };
}

/** Words to be said again, some of them of no language. */
export function askEcho(random: RandomStream): Exchange {
  const count = random.integers(1, 9);
  const words = random.choice<() => string[]>([
    () => sampleItems([...THINGS, ...COLORS, ...ACTIONS, ...READINGS], count, random),
    () => sampleItems([...NAMES, ...THINGS], count, random),
    () => Array.from({ length: Math.ceil(count / 2) }, () => drawName(random)),
    () => drawUnnamedNumbers(Math.ceil(count / 2), random).map(({ text }) => text),
  ])();
  const separator = random.choice([" ", ", ", "; "]);
  const backwards = random.random() < 0.15;
  return {
    skill: backwards ? "copy backwards" : "copy all",
    user: `${backwards ? "Say backwards" : random.choice(["Repeat", "Say", "Copy"])}: ${words.join(separator)}`,
    assistant: (backwards ? [...words].reverse() : words).join(separator),
  };
}
