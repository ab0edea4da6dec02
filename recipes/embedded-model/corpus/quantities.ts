import type { RandomStream } from "../../../src/tensor/random.js";
import { rounded, spread, written, type NumberStyle } from "./number-text.js";

/** A number that a text tells, under a name: "the pole angle" is "+0.042". */
export interface Quantity {
  readonly name: string;
  /** What it may be: [-limit, limit], or whole numbers in [low, high]. */
  readonly limit: number;
  readonly value: number;
  readonly text: string;
  readonly style: NumberStyle;
}

/** Something that is true or false of a text: `Is ${subject} ${complement}?`, "if subject is complement". */
export interface Statement {
  readonly skill: string;
  readonly subject: string;
  readonly complement: string;
  /** Whether it is true of quantities of the same names. */
  readonly holds: (quantities: readonly Quantity[]) => boolean;
}

/** A statement about quantities that holds as often as not. */
export function drawStatement(quantities: readonly Quantity[], random: RandomStream): Statement {
  const wanted = random.random() < 0.5;
  let statement = anyStatement(quantities, random);
  for (let i = 0; i < 8 && statement.holds(quantities) !== wanted; i++) statement = anyStatement(quantities, random);
  return statement;
}

type Draw = (quantities: readonly Quantity[], random: RandomStream) => Statement;

function anyStatement(quantities: readonly Quantity[], random: RandomStream): Statement {
  const kinds: Draw[] = [sign, threshold];
  if (quantities.some(({ limit }) => limit < Infinity)) kinds.push(threshold);
  if (quantities.length > 1) kinds.push(comparison, sumSign, weightedSumSign, weightedSumSign);
  return random.choice(kinds)(quantities, random);
}

/** "the pole angle is negative" */
function sign(quantities: readonly Quantity[], random: RandomStream): Statement {
  const { name } = random.choice(quantities);
  const [complement, test] = random.choice([
    ["negative", (value: number) => value < 0],
    ["positive", (value: number) => value > 0],
    ["zero or more", (value: number) => value >= 0],
  ] as const);
  return { skill: "sign", subject: name, complement, holds: (now) => test(valueOf(now, name)) };
}

/** "the pole angle is above +0.05", with a threshold near the value half of the time. */
function threshold(quantities: readonly Quantity[], random: RandomStream): Statement {
  const { name, value, limit, style } = random.choice(quantities);
  const at = random.random() < 0.5 ? value + spread(random, limit / 4) : spread(random, limit);
  const bound = rounded(at, style);
  const above = random.random() < 0.5;
  const words = above ? ["above", "larger than", "more than"] : ["below", "smaller than", "less than"];
  return {
    skill: "threshold",
    subject: name,
    complement: `${random.choice(words)} ${written(bound, style)}`,
    holds: (now) => (above ? valueOf(now, name) > bound : valueOf(now, name) < bound),
  };
}

/** "the pole angle is larger than the cart position" */
function comparison(quantities: readonly Quantity[], random: RandomStream): Statement {
  const [a, b] = pair(quantities, random);
  const above = random.random() < 0.5;
  return {
    skill: "compare",
    subject: a.name,
    complement: `${above ? "larger" : "smaller"} than ${b.name}`,
    holds: (now) => {
      const difference = valueOf(now, a.name) - valueOf(now, b.name);
      return above ? difference > 0 : difference < 0;
    },
  };
}

/** "the pole angle plus the angular velocity is positive" */
function sumSign(quantities: readonly Quantity[], random: RandomStream): Statement {
  const [a, b] = pair(quantities, random);
  return signOf(`${a.name} plus ${b.name}`, [a.name, 1, b.name, 1], "sign of a sum", random);
}

/** "3 times the pole angle plus the angular velocity is positive" */
function weightedSumSign(quantities: readonly Quantity[], random: RandomStream): Statement {
  const [a, b] = pair(quantities, random);
  const factor = random.choice([2, 3, 5, 10]);
  const minus = random.random() < 0.3;
  const subject = `${factor} times ${a.name} ${minus ? "minus" : "plus"} ${b.name}`;
  return signOf(subject, [a.name, factor, b.name, minus ? -1 : 1], "sign of a weighted sum", random);
}

/** What is added up: a name, its factor, another name, its factor. */
type Sum = readonly [a: string, factorA: number, b: string, factorB: number];

function signOf(subject: string, [a, factorA, b, factorB]: Sum, skill: string, random: RandomStream): Statement {
  const positive = random.random() < 0.5;
  const holds = (now: readonly Quantity[]) => {
    const sum = factorA * valueOf(now, a) + factorB * valueOf(now, b);
    return positive ? sum > EQUAL : sum < -EQUAL;
  };
  return { skill, subject, complement: positive ? "positive" : "negative", holds };
}

/** Sums of the same written numbers in another order may differ by this. */
const EQUAL = 1e-9;

function valueOf(quantities: readonly Quantity[], name: string): number {
  return quantities.find((quantity) => quantity.name === name)?.value ?? 0;
}

/** Two different quantities. */
export function pair(quantities: readonly Quantity[], random: RandomStream): readonly [Quantity, Quantity] {
  const [first, second] = random.sampleIndices(quantities.length, 2);
  return [quantities[first], quantities[second]];
}
