import type { RandomStream } from "../../../src/tensor/random.js";
import type { Exchange } from "./conversation.js";
import { some } from "./made-up-scenes.js";
import { randomStyle, roundedHalfAway, rounded, signWord, sizeWord, spread, written } from "./number-text.js";
import type { Quantity } from "./quantities.js";
import { ACTIONS, COLOURS, NAMES, READINGS, THINGS } from "./word-lists.js";

const join = (answers: readonly string[]) => answers.join(", ");

/** One answer for each of several numbers: much to learn from one text. */
export function askAboutAll(quantities: readonly Quantity[], random: RandomStream): Exchange {
  const bound = random.choice(quantities);
  const near = rounded(random.random() < 0.3 ? 0 : bound.value + spread(random, bound.limit / 4), bound.style);
  return random.choice<() => Exchange>([
    () => ({ skill: "copy all", user: "Say all numbers.", assistant: join(quantities.map(({ text }) => text)) }),
    () => ({
      skill: "signs of all",
      user: "Say all signs.",
      assistant: join(quantities.map(({ value }) => signWord(value))),
    }),
    () => ({
      skill: "sizes of all",
      user: "Say all sizes.",
      assistant: join(quantities.map(({ value }) => sizeWord(value))),
    }),
    () => ({
      skill: "round all",
      user: "Round all to one decimal.",
      assistant: join(
        quantities.map(({ text, style }) => written(roundedHalfAway(text, 1), { decimals: 1, plus: style.plus })),
      ),
    }),
    () => ({
      skill: "thresholds of all",
      user: `Above or below ${written(near, bound.style)}?`,
      assistant: join(quantities.map(({ value }) => (value > near ? "above" : value < near ? "below" : "equal"))),
    }),
    () => ({
      skill: "sort",
      user: "Sort from small to large.",
      assistant: join([...quantities].sort((a, b) => a.value - b.value).map(({ text }) => text)),
    }),
  ])();
}

/** The same about numbers without names. */
export function askAboutRow(random: RandomStream): Exchange {
  const style = randomStyle(random);
  const limit = style.decimals === 0 ? random.choice([10, 21, 100]) : random.choice([0.1, 1, 3, 10]);
  const quantities = Array.from({ length: random.integers(2, 8) }, () => {
    const value = rounded(spread(random, limit), style);
    const text = written(value, style);
    return { name: text, limit, value, style, text };
  });
  const asked = askAboutAll(quantities, random);
  const row = quantities.map(({ text }) => text).join(random.choice([", ", " ", "; ", "\n"]));
  return { ...asked, user: `${row}\n${asked.user}` };
}

const SYLLABLES =
  "ba be bo da de do fa fi fo ga ge go ka ki ko la le lo ma mi mo na ne no pa po ra re ri sa so ta ti to".split(" ");

/** Words to be said again, some of them of no language. */
export function echo(random: RandomStream): Exchange {
  const made = () => Array.from({ length: random.integers(2, 5) }, () => random.choice(SYLLABLES)).join("");
  const count = random.integers(1, 9);
  const words = random.choice<() => string[]>([
    () => some([...THINGS, ...COLOURS, ...ACTIONS, ...READINGS], count, random),
    () => some([...NAMES, ...THINGS], count, random),
    () => Array.from({ length: Math.ceil(count / 2) }, made),
  ])();
  const separator = random.choice([" ", ", ", "; "]);
  const backwards = random.random() < 0.2;
  return {
    skill: backwards ? "copy backwards" : "copy all",
    user: `${backwards ? "Say backwards" : random.choice(["Repeat", "Say", "Copy"])}: ${words.join(separator)}`,
    assistant: (backwards ? [...words].reverse() : words).join(separator),
  };
}
