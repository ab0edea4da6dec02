import type { RandomStream } from "../../../src/core/random/random-stream.js";
import { roundToStyle, drawSpread, INTEGER_STYLE, formatNumber, type NumberStyle } from "./number-text.js";
import { drawPair, shortName, type Quantity, type Range } from "./quantities.js";

/** Something about quantities that is true or false. */
export interface Statement {
  readonly skill: string;
  /** `Is ${subject} ${complement}?`, "if subject is complement" */
  readonly subject: string;
  readonly complement: string;
  /** The same in signs: "pole angle > +0.05". */
  readonly signs: string;
  /** Whether it is true of quantities of the same names. */
  readonly holds: (quantities: readonly Quantity[]) => boolean;
}

type StatementSampler = (quantities: readonly Quantity[], random: RandomStream) => Statement;

/** Kinds of statements; one that stands twice is made twice as often. */
const ABOUT_ONE: readonly StatementSampler[] = [drawThreshold, drawThreshold];
const ABOUT_TWO: readonly StatementSampler[] = [
  ...ABOUT_ONE,
  drawComparison,
  drawSum,
  drawWeightedSum,
  drawWeightedSum,
];

/** A statement about quantities that holds as often as not. */
export function drawStatement(quantities: readonly Quantity[], random: RandomStream): Statement {
  const canBeNegative = quantities.every(({ range: [low] }) => low < 0);
  const kinds = [...(canBeNegative ? [drawSign] : []), ...(quantities.length > 1 ? ABOUT_TWO : ABOUT_ONE)];
  const kind = random.choice(kinds);
  const targetTruth = random.random() < 0.5;
  let statement = kind(quantities, random);
  for (let i = 0; i < 8 && statement.holds(quantities) !== targetTruth; i++) statement = kind(quantities, random);
  return statement;
}

function findValue(quantities: readonly Quantity[], name: string): number {
  return quantities.find((quantity) => quantity.name === name)?.value ?? 0;
}

/** "the pole angle is negative" */
function drawSign(quantities: readonly Quantity[], random: RandomStream): Statement {
  const subject = random.choice(quantities);
  const { name } = subject;
  const negative = random.random() < 0.5;
  return {
    skill: "sign",
    subject: name,
    complement: negative ? "negative" : "positive",
    signs: `${shortName(subject)} ${negative ? "<" : ">"} 0`,
    holds: (now) => (negative ? findValue(now, name) < 0 : findValue(now, name) > 0),
  };
}

/** "the pole angle is above +0.05" */
function drawThreshold(quantities: readonly Quantity[], random: RandomStream): Statement {
  const subject = random.choice(quantities);
  const { name, value, range, style } = subject;
  const bound = drawBound(value, range, style, random);
  return buildBoundStatement(
    { skill: "threshold", words: name, signs: shortName(subject), valueIn: (now) => findValue(now, name) },
    { bound, text: formatNumber(bound, style) },
    random,
  );
}

/** A bound near the value half of the time, else anywhere between the least and the greatest. */
export function drawBound(value: number, [low, high]: Range, style: NumberStyle, random: RandomStream): number {
  const width = high - low;
  const bound =
    random.random() < 0.5 ? value + drawSpread(random, width / 8) : (low + high) / 2 + drawSpread(random, width / 2);
  return roundToStyle(Math.min(high, Math.max(low, bound)), style);
}

interface Term {
  readonly skill: string;
  readonly words: string;
  readonly signs: string;
  readonly valueIn: (quantities: readonly Quantity[]) => number;
}

/** Sums of the same written numbers in another order may differ by this. */
const TOLERANCE = 1e-9;

function buildBoundStatement(
  { skill, words, signs, valueIn }: Term,
  { bound, text }: { readonly bound: number; readonly text: string },
  random: RandomStream,
): Statement {
  const above = random.random() < 0.5;
  return {
    skill,
    subject: words,
    complement: `${above ? "above" : "below"} ${text}`,
    signs: `${signs} ${above ? ">" : "<"} ${text}`,
    holds: (now) => (above ? valueIn(now) > bound + TOLERANCE : valueIn(now) < bound - TOLERANCE),
  };
}

/** "the pole angle is larger than the cart position" */
function drawComparison(quantities: readonly Quantity[], random: RandomStream): Statement {
  const [a, b] = drawPair(quantities, random);
  const above = random.random() < 0.5;
  return {
    skill: "compare",
    subject: a.name,
    complement: `${above ? "larger" : "smaller"} than ${b.name}`,
    signs: `${shortName(a)} ${above ? ">" : "<"} ${shortName(b)}`,
    holds: (now) => {
      const difference = findValue(now, a.name) - findValue(now, b.name);
      return above ? difference > 0 : difference < 0;
    },
  };
}

/** "the pole angle plus the angular velocity is positive" */
function drawSum(quantities: readonly Quantity[], random: RandomStream): Statement {
  const [a, b] = drawPair(quantities, random);
  const names = { words: `${a.name} plus ${b.name}`, signs: `${shortName(a)} + ${shortName(b)}` };
  return buildSumStatement("sign of a sum", names, [a, 1, b, 1], random);
}

/** "3 times the pole angle plus the angular velocity is positive" */
function drawWeightedSum(quantities: readonly Quantity[], random: RandomStream): Statement {
  const [a, b] = drawPair(quantities, random);
  const factor = random.choice([2, 3, 5, 10]);
  const minus = random.random() < 0.3;
  const names = {
    words: `${factor} times ${a.name} ${minus ? "minus" : "plus"} ${b.name}`,
    signs: `${factor} ${shortName(a)} ${minus ? "-" : "+"} ${shortName(b)}`,
  };
  return buildSumStatement("sign of a weighted sum", names, [a, factor, b, minus ? -1 : 1], random);
}

/** A sum's sign; of quantities that are never negative, whether their sum is above a number. */
function buildSumStatement(
  skill: string,
  names: { readonly words: string; readonly signs: string },
  [a, factorA, b, factorB]: readonly [a: Quantity, factorA: number, b: Quantity, factorB: number],
  random: RandomStream,
): Statement {
  const valueIn = (now: readonly Quantity[]) => factorA * findValue(now, a.name) + factorB * findValue(now, b.name);
  if (a.range[0] >= 0 || b.range[0] >= 0) {
    const value = valueIn([a, b]);
    const bound = drawBound(value, [value - 10, value + 10], INTEGER_STYLE, random);
    return buildBoundStatement(
      { ...names, skill, valueIn },
      { bound, text: formatNumber(bound, INTEGER_STYLE) },
      random,
    );
  }
  const positive = random.random() < 0.5;
  return {
    skill,
    subject: names.words,
    complement: positive ? "positive" : "negative",
    signs: `${names.signs} ${positive ? ">" : "<"} 0`,
    holds: (now) => (positive ? valueIn(now) > TOLERANCE : valueIn(now) < -TOLERANCE),
  };
}
