import type { RandomStream } from "../../../src/tensor/random.js";
import type { Exchange } from "./conversation.js";
import { randomStyle, rounded, roundedHalfAway, signWord, sizeWord, spread, written } from "./number-text.js";
import { askAboutAll } from "./all-at-once.js";
import { drawStatement, pair, type Quantity } from "./quantities.js";
import type { Scene } from "./scene.js";

type Ask = (quantities: readonly Quantity[], random: RandomStream) => Exchange;

/** Kinds of questions about numbers that a text tells; a kind that stands twice is asked twice as often. */
const ABOUT_ONE: readonly Ask[] = [copy, signOf, size, round, statement, statement, statement, statement];
const ABOUT_TWO: readonly Ask[] = [
  ...ABOUT_ONE,
  askAboutAll,
  askAboutAll,
  askAboutAll,
  askAboutAll,
  larger,
  farther,
  sum,
  sum,
  statement,
  statement,
  statement,
];

/** A question about what a scene shows; undefined for a scene that tells nothing to ask about. */
export function askAbout({ quantities = [], facts = [] }: Scene, random: RandomStream): Exchange | undefined {
  const aboutFact = facts.length > 0 && (quantities.length === 0 || random.random() < 0.5);
  if (aboutFact) {
    const { skill, question, answer } = random.choice(facts);
    return { skill, user: question, assistant: answer };
  }
  if (quantities.length === 0) return undefined;
  return random.choice(quantities.length > 1 ? ABOUT_TWO : ABOUT_ONE)(quantities, random);
}

function copy(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { name, text } = random.choice(quantities);
  const user = random.choice([`What is ${name}?`, `Copy ${name}.`, `How much is ${name}?`]);
  return { skill: "copy", user, assistant: text };
}

function signOf(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { name, value } = random.choice(quantities);
  return { skill: "sign", user: `What sign has ${name}?`, assistant: signWord(value) };
}

function size(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { name, value } = random.choice(quantities);
  if (random.random() < 0.5) {
    return {
      skill: "size",
      user: `Is ${name} near zero?`,
      assistant: Math.abs(value) < 0.05 ? "yes" : "no",
    };
  }
  return { skill: "size", user: `How large is ${name}?`, assistant: sizeWord(value) };
}

function round(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { name, text, style } = random.choice(quantities);
  const decimals = random.integers(0, Math.max(1, style.decimals));
  const places = ["a whole number", "one decimal", "two decimals", "three decimals"][decimals];
  return {
    skill: "round",
    user: `Round ${name} to ${places}.`,
    assistant: written(roundedHalfAway(text, decimals), { decimals, plus: style.plus }),
  };
}

function statement(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const { skill, subject, complement, holds } = drawStatement(quantities, random);
  return { skill, user: `Is ${subject} ${complement}?`, assistant: holds(quantities) ? "yes" : "no" };
}

function larger(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [a, b] = pair(quantities, random);
  const wantsLarger = random.random() < 0.5;
  const first = wantsLarger ? a.value >= b.value : a.value <= b.value;
  return {
    skill: "compare",
    user: `Which is ${wantsLarger ? "larger" : "smaller"}, ${a.name} or ${b.name}?`,
    assistant: bare(first ? a : b),
  };
}

function farther(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [a, b] = pair(quantities, random);
  return {
    skill: "compare",
    user: `Which is farther from zero, ${a.name} or ${b.name}?`,
    assistant: bare(Math.abs(a.value) >= Math.abs(b.value) ? a : b),
  };
}

/** The sum or difference of two quantities, to one decimal where they have more. */
function sum(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const [a, b] = pair(quantities, random);
  const minus = random.random() < 0.3;
  const style = { decimals: Math.min(1, Math.max(a.style.decimals, b.style.decimals)), plus: a.style.plus };
  const [x, y] = [a, b].map(({ value }) => value);
  const about = style.decimals < Math.max(a.style.decimals, b.style.decimals) ? "About how much" : "How much";
  return {
    skill: "add",
    user: `${about} is ${a.name} ${minus ? "minus" : "plus"} ${b.name}?`,
    assistant: written(minus ? x - y : x + y, style),
  };
}

/** A quantity's name without its article. */
const bare = ({ name }: Quantity) => name.replace(/^(?:the|your) /, "");

/** A question about numbers that stand in the question itself. */
export function askAboutNumbers(random: RandomStream): Exchange {
  const style = randomStyle(random);
  const limit = style.decimals === 0 ? random.choice([10, 21, 100]) : random.choice([0.1, 1, 3, 10]);
  const quantities = Array.from({ length: 2 }, () => {
    const value = rounded(spread(random, limit), style);
    const text = written(value, style);
    return { name: text, limit, value, style, text };
  });
  if (random.random() < 0.5) quantities[1] = near(quantities[0], random);
  const ask = random.choice([signOf, size, round, statement, statement, statement, larger, farther, sum, sum]);
  return ask(quantities, random);
}

/** Another number close to the first: comparing them takes all digits. */
function near(quantity: Quantity, random: RandomStream): Quantity {
  const { value: from, style, limit } = quantity;
  const value = rounded(random.random() < 0.2 ? -from : from + spread(random, limit / 3), style);
  const text = written(value, style);
  return { ...quantity, name: text, text, value };
}
