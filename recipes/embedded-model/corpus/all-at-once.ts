import type { RandomStream } from "../../../src/tensor/random.js";
import type { Exchange } from "./conversation.js";
import { rounded, roundedHalfAway, sideWord, signWord, sizeWord, spread, written } from "./number-text.js";
import { bareNumbers, shortName, type Quantity } from "./quantities.js";
import { ACTIONS, COLOURS, drawName, NAMES, READINGS, some, THINGS } from "./word-lists.js";

type AnswerAll = (quantities: readonly Quantity[], random: RandomStream) => Exchange;

/** An instruction that is answered for each number in turn. */
function forEach(skill: string, user: string, answer: (quantity: Quantity) => string): AnswerAll {
  return (quantities) => ({ skill, user, assistant: quantities.map(answer).join(", ") });
}

/** Kinds of instructions; one that stands twice is given twice as often. */
const KINDS: readonly AnswerAll[] = [
  forEach("copy all", "Say all numbers.", ({ text }) => text),
  forEach("signs of all", "Say all signs.", ({ value }) => signWord(value)),
  forEach("sizes of all", "Say all sizes.", ({ value }) => sizeWord(value)),
  forEach("round all", "Round all to one decimal.", ({ text, style }) =>
    written(roundedHalfAway(text, 1), { decimals: 1, plus: style.plus }),
  ),
  sort,
  thresholds,
  thresholds,
  thresholds,
  sumSigns,
  sumSigns,
  sumSigns,
  ruleForAll,
  ruleForAll,
  ruleForAll,
];

/** One answer for each of several numbers: much to learn from one text. */
export function askAboutAll(quantities: readonly Quantity[], random: RandomStream): Exchange {
  return random.choice(KINDS)(quantities, random);
}

function thresholds(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const bound = drawAmong(quantities, random);
  const user = `Above or below ${bound.text}?`;
  return forEach("thresholds of all", user, ({ value }) => sideWord(value, bound.value))(quantities, random);
}

/** A bound that lies among the quantities, so that some are above and some below. */
function drawAmong(quantities: readonly Quantity[], random: RandomStream): { value: number; text: string } {
  const { value, range, style } = random.choice(quantities);
  const bound = rounded(random.random() < 0.2 ? 0 : value + spread(random, (range[1] - range[0]) / 8), style);
  return { value: bound, text: written(bound, style) };
}

/** One word for numbers of which something is true, another for the others. */
function ruleForAll(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [first, second] = some(ACTIONS, 2, random);
  const bound = drawAmong(quantities, random);
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
  return forEach("rule for all", user, ({ value }) => (holds(value) ? first : second))(quantities, random);
}

function sort(quantities: readonly Quantity[]): Exchange {
  const sorted = [...quantities].sort((a, b) => a.value - b.value);
  return { skill: "sort", user: "Sort from small to large.", assistant: sorted.map(({ text }) => text).join(", ") };
}

/** A sum with each of several numbers that comes out on both sides of zero: "3 times each plus -0.4". */
function drawSum(
  quantities: readonly Quantity[],
  random: RandomStream,
): { readonly words: string; readonly sumWith: (value: number) => number } {
  const factor = random.choice([1, 1, 2, 3, 5, 10]);
  const { value, range, style } = random.choice(quantities);
  const near = rounded(-factor * (value + spread(random, (range[1] - range[0]) / 8)), style);
  const isTold = factor === 1 && random.random() < 0.4;
  const told = random.choice(quantities);
  const added = isTold ? told.value : near;
  const each = factor === 1 ? "each" : `${factor} times each`;
  return {
    words: `${each} plus ${isTold ? shortName(told) : written(near, style)}`,
    // Without what binary fractions leave behind.
    sumWith: (value) => rounded(factor * value + added, { decimals: 6, plus: false }),
  };
}

/** The sign of a sum with each number. */
function sumSigns(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { words, sumWith } = drawSum(quantities, random);
  const sign = ({ value }: Quantity) => signWord(sumWith(value));
  return forEach("signs of all sums", `Signs of ${words}?`, sign)(quantities, random);
}

/** A row of numbers without names, and questions about all of them. */
export function askAboutRow(random: RandomStream, count: number): { text: string; questions: readonly Exchange[] } {
  const numbers = bareNumbers(random.integers(2, 10), random);
  const row = numbers.map(({ text }) => text).join(random.choice([", ", " ", "; ", "\n"]));
  return { text: `${row}\n`, questions: Array.from({ length: count }, () => askAboutAll(numbers, random)) };
}

/** Words to be said again, some of them of no language. */
export function echo(random: RandomStream): Exchange {
  const count = random.integers(1, 9);
  const words = random.choice<() => string[]>([
    () => some([...THINGS, ...COLOURS, ...ACTIONS, ...READINGS], count, random),
    () => some([...NAMES, ...THINGS], count, random),
    () => Array.from({ length: Math.ceil(count / 2) }, () => drawName(random)),
    () => bareNumbers(Math.ceil(count / 2), random).map(({ text }) => text),
  ])();
  const separator = random.choice([" ", ", ", "; "]);
  const backwards = random.random() < 0.15;
  return {
    skill: backwards ? "copy backwards" : "copy all",
    user: `${backwards ? "Say backwards" : random.choice(["Repeat", "Say", "Copy"])}: ${words.join(separator)}`,
    assistant: (backwards ? [...words].reverse() : words).join(separator),
  };
}
