import type { RandomStream } from "../../../src/tensor/random.js";
import type { Exchange } from "./conversation.js";
import { rounded, roundedHalfAway, signWord, sizeWord, spread, written } from "./number-text.js";
import { bareNumbers, shortName, type Quantity } from "./quantities.js";
import { ACTIONS, COLOURS, drawName, NAMES, READINGS, some, THINGS } from "./word-lists.js";

type AnswerAll = (quantities: readonly Quantity[], random: RandomStream) => Exchange;

/** An instruction that is answered for each number in turn. */
function forEach(skill: string, user: string, answer: (quantity: Quantity) => string): AnswerAll {
  return (quantities) => ({ skill, user, assistant: quantities.map(answer).join(", ") });
}

const KINDS: readonly AnswerAll[] = [
  forEach("copy all", "Say all numbers.", ({ text }) => text),
  forEach("signs of all", "Say all signs.", ({ value }) => signWord(value)),
  forEach("sizes of all", "Say all sizes.", ({ value }) => sizeWord(value)),
  forEach("round all", "Round all to one decimal.", ({ text, style }) =>
    written(roundedHalfAway(text, 1), { decimals: 1, plus: style.plus }),
  ),
  thresholds,
  thresholds,
  sort,
  sumSigns,
  sumSigns,
];

/** One answer for each of several numbers: much to learn from one text. */
export function askAboutAll(quantities: readonly Quantity[], random: RandomStream): Exchange {
  return random.choice(KINDS)(quantities, random);
}

function thresholds(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { value, range, style } = random.choice(quantities);
  const bound = rounded(random.random() < 0.2 ? 0 : value + spread(random, (range[1] - range[0]) / 8), style);
  const side = ({ value }: Quantity) => (value > bound ? "above" : value < bound ? "below" : "equal");
  return forEach("thresholds of all", `Above or below ${written(bound, style)}?`, side)(quantities, random);
}

function sort(quantities: readonly Quantity[]): Exchange {
  const sorted = [...quantities].sort((a, b) => a.value - b.value);
  return { skill: "sort", user: "Sort from small to large.", assistant: sorted.map(({ text }) => text).join(", ") };
}

/** The signs of the sums of one number with each. */
function sumSigns(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const added = random.choice(quantities);
  const factor = random.choice([1, 1, 2, 3, 5]);
  const name = `${factor === 1 ? "" : `${factor} `}${shortName(added)}`;
  return forEach("signs of all sums", `Signs with ${name} added?`, ({ value }) =>
    signWord(rounded(value + factor * added.value, { decimals: 6, plus: false })),
  )(quantities, random);
}

/** The same about a row of numbers without names. */
export function askAboutRow(random: RandomStream): Exchange[] {
  const numbers = bareNumbers(random.integers(2, 8), random);
  const row = numbers.map(({ text }) => text).join(random.choice([", ", " ", "; ", "\n"]));
  const exchanges = Array.from({ length: random.integers(1, 5) }, () => askAboutAll(numbers, random));
  return exchanges.map((asked, i) => (i === 0 ? { ...asked, user: `${row}\n${asked.user}` } : asked));
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
