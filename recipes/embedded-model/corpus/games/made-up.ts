import type { RandomStream } from "../../../../src/core/random/random-stream.js";
import { roundToStyle, drawSpread } from "../number-text.js";
import { drawScale, makeQuantity } from "../quantities.js";
import { ACTIONS, drawName, READINGS, sampleItems, THINGS } from "../word-lists.js";
import { drawInstruction, type ScenarioSampler } from "./game.js";

const OPENINGS = [
  "You control a machine.",
  "You play a game.",
  "You are the pilot.",
  "Keep everything in balance.",
  "Each turn you see the state and choose an action.",
  "You are a helpful agent.",
  "Decide what to do.",
];

/**
 * A game that does not exist: some numbers, some actions. What is learnt from it does not depend on
 * one wording.
 */
export const madeUpScenario: ScenarioSampler = (random) => {
  const { style, limit } = drawScale(random);
  const names = sampleItems(READINGS, random.integers(1, 5), random);
  const validCompletions = drawCompletions(random, random.integers(2, 6));
  const [between, after] = [random.choice([": ", ": ", " = ", " "]), random.choice([", ", "\n", "; "])];
  const instructed = drawInstruction(validCompletions, random);
  const inSystem = random.random() < 0.7;
  return {
    id: "made up",
    system: inSystem ? `${random.choice(OPENINGS)} ${instructed}` : random.choice(OPENINGS),
    observe: (random) => {
      const quantities = names.map((name) =>
        makeQuantity(`the ${name}`, roundToStyle(drawSpread(random, limit), style), [-limit, limit], style),
      );
      const readings = names.map((name, i) => `${name}${between}${quantities[i].text}`).join(after);
      const text = readings.charAt(0).toUpperCase() + readings.slice(1);
      return { text: inSystem ? text : `${text}\n${instructed}`, validCompletions, quantities };
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
export const menuScenario: ScenarioSampler = (random) => {
  const menu = random.choice(MENUS);
  return {
    id: "menu",
    system: random.choice(["Choose one.", "Pick any one of the list.", "Answer with one of the choices.", ...OPENINGS]),
    observe: (random) => {
      const validCompletions = drawCompletions(random, random.integers(2, 8));
      return { text: menu(validCompletions), validCompletions };
    },
  };
};

/** Different words to choose from: actions, things, or names of no language. */
function drawCompletions(random: RandomStream, count: number): string[] {
  const kind = random.random();
  if (kind < 0.4) return sampleItems(ACTIONS, count, random);
  if (kind < 0.8) return sampleItems(THINGS, count, random);
  return [...new Set(Array.from({ length: count + 1 }, () => drawName(random)))].slice(0, Math.max(2, count));
}
