import type { RandomStream } from "../../../src/tensor/random.js";
import { randomStyle, rounded, spread, written } from "./number-text.js";
import type { Quantity } from "./quantities.js";
import { instruction, type Scene } from "./scene.js";
import { ACTIONS, READINGS, THINGS } from "./word-lists.js";

const OPENINGS = [
  "You control a machine.",
  "You play a game.",
  "You are the pilot.",
  "Keep everything in balance.",
  "Each turn you see the state and choose an action.",
  "You are a helpful agent.",
  "Decide what to do.",
];

/** A game that does not exist: some numbers, some actions. What is learnt from it does not depend on one wording. */
export function madeUpScene(random: RandomStream): Scene {
  const style = randomStyle(random);
  const limit = random.choice([0.1, 1, 1, 5, 10, 100]);
  const names = some(READINGS, random.integers(1, 5), random);
  const quantities: Quantity[] = names.map((name) => {
    const value = rounded(spread(random, limit), style);
    return { name: `the ${name}`, limit, value, style, text: written(value, style) };
  });
  const replies = some(ACTIONS, random.integers(2, 6), random);
  const separator = random.choice([": ", ": ", " = ", " "]);
  const readings = names.map((name, i) => `${name}${separator}${quantities[i].text}`);
  const text = readings.join(random.choice([", ", "\n", "; "]));
  const instructed = instruction(replies, random);
  const inSystem = random.random() < 0.7;
  return {
    game: "made up",
    system: inSystem ? `${random.choice(OPENINGS)} ${instructed}` : random.choice(OPENINGS),
    text: inSystem ? capitalised(text) : `${capitalised(text)}\n${instructed}`,
    replies,
    quantities,
  };
}

/** A choice between things that are listed in the message alone. */
export function menuScene(random: RandomStream): Scene {
  const replies = some(random.random() < 0.5 ? THINGS : ACTIONS, random.integers(2, 8), random);
  return {
    game: "menu",
    system: random.choice(["Choose one.", "Pick any one of the list.", "Answer with one of the choices.", ...OPENINGS]),
    text: random.choice([
      `Choices: ${replies.join(", ")}.`,
      `Commands that you can use: ${replies.join("; ")}.`,
      `You can choose ${replies.join(", ")}. Which one?`,
      `[${replies.join("] [")}]`,
    ]),
    replies,
  };
}

export function some<T>(items: readonly T[], count: number, random: RandomStream): T[] {
  return random.sampleIndices(items.length, count).map((i) => items[i]);
}

const capitalised = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
