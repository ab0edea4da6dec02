import type { RandomStream } from "../../../../src/tensor/random.js";
import { rounded, spread } from "../number-text.js";
import { drawScale, quantity } from "../quantities.js";
import { ACTIONS, drawName, READINGS, some, THINGS } from "../word-lists.js";
import { instruction, type DrawGame } from "./game.js";

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
export const madeUpGame: DrawGame = (random) => {
  const { style, limit } = drawScale(random);
  const names = some(READINGS, random.integers(1, 5), random);
  const replies = drawReplies(random, random.integers(2, 6));
  const [between, after] = [random.choice([": ", ": ", " = ", " "]), random.choice([", ", "\n", "; "])];
  const instructed = instruction(replies, random);
  const inSystem = random.random() < 0.7;
  return {
    id: "made up",
    system: inSystem ? `${random.choice(OPENINGS)} ${instructed}` : random.choice(OPENINGS),
    moment: (random) => {
      const quantities = names.map((name) =>
        quantity(`the ${name}`, rounded(spread(random, limit), style), [-limit, limit], style),
      );
      const readings = names.map((name, i) => `${name}${between}${quantities[i].text}`).join(after);
      const text = readings.charAt(0).toUpperCase() + readings.slice(1);
      return { text: inSystem ? text : `${text}\n${instructed}`, replies, quantities };
    },
  };
};

const MENUS = [
  (items: readonly string[]) => `Choices: ${items.join(", ")}.`,
  (items: readonly string[]) => `Commands that you can use: ${items.join("; ")}.`,
  (items: readonly string[]) => `You can choose ${items.join(", ")}. Which one?`,
  (items: readonly string[]) => `[${items.join("] [")}]`,
  (items: readonly string[]) => items.join("\n"),
];

/** A choice between things that are listed in the message alone. */
export const menuGame: DrawGame = (random) => {
  const menu = random.choice(MENUS);
  return {
    id: "menu",
    system: random.choice(["Choose one.", "Pick any one of the list.", "Answer with one of the choices.", ...OPENINGS]),
    moment: (random) => {
      const replies = drawReplies(random, random.integers(2, 8));
      return { text: menu(replies), replies };
    },
  };
};

/** Different words to choose from: actions, things, or names of no language. */
function drawReplies(random: RandomStream, count: number): string[] {
  const kind = random.random();
  if (kind < 0.4) return some(ACTIONS, count, random);
  if (kind < 0.8) return some(THINGS, count, random);
  return [...new Set(Array.from({ length: count + 1 }, () => drawName(random)))].slice(0, Math.max(2, count));
}
