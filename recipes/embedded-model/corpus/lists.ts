import type { RandomStream } from "../../../src/core/random/random-stream.js";
import { formatList, type Exchange } from "./conversation.js";
import { yesOrNo } from "./games/game.js";
import { ACTIONS, COLORS, drawName, NAMES, sampleItems, THINGS } from "./word-lists.js";

/** A text and questions that it answers. */
export interface Passage {
  readonly text: string;
  readonly ask: (random: RandomStream) => Exchange;
}

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth"];

/** A list of words: which is first, last, next; how many; whether one is there. */
export function drawWordList(random: RandomStream): Passage {
  const madeUpNames = Array.from({ length: 12 }, () => drawName(random));
  const source = random.choice([THINGS, COLORS, NAMES, ACTIONS, [...new Set(madeUpNames)]]);
  const items = sampleItems(source, random.integers(2, 7), random);
  const separator = random.choice([", ", "; ", " "]);
  return {
    text: random.choice(["List: ", "Words: ", "Choices: ", "Here is a list: "]) + items.join(separator),
    ask: (random) => {
      const i = random.integers(items.length);
      const word = random.random() < 0.5 ? items[i] : random.choice(source);
      return random.choice<() => Exchange>([
        () => ({ skill: "lists", user: "How many are in the list?", assistant: `${items.length}` }),
        () => ({ skill: "lists", user: "Which is the last?", assistant: items.at(-1)! }),
        () => ({ skill: "lists", user: `Which is the ${ORDINALS[i]}?`, assistant: items[i] }),
        () => ({ skill: "lists", user: `Is ${word} in the list?`, assistant: yesOrNo(items.includes(word)) }),
        () => ({ skill: "lists", user: `What comes after ${items[i]}?`, assistant: items[i + 1] ?? "nothing" }),
        () => ({ skill: "copy", user: `Say: ${word}`, assistant: word }),
      ])();
    },
  };
}

/** What somebody carries. */
export function drawInventory(random: RandomStream): Passage {
  const colors = sampleItems(COLORS, 6, random);
  const things = sampleItems(THINGS, random.integers(0, 5), random).map((thing, i) => [colors[i], thing] as const);
  const carried = things.map(([color, thing]) => `a ${color} ${thing}`);
  return {
    text: carried.length === 0 ? "You are carrying nothing." : `You are carrying: ${formatList(carried, "and")}.`,
    ask: (random) => {
      const one = things.length > 0 ? random.choice(things) : undefined;
      const thing = one !== undefined && random.random() < 0.5 ? one[1] : random.choice(THINGS);
      const kinds: (() => Exchange)[] = [
        () => ({ skill: "lists", user: "How many things do you carry?", assistant: `${things.length}` }),
        () => ({
          skill: "lists",
          user: `Do you carry a ${thing}?`,
          assistant: yesOrNo(things.some(([, carried]) => carried === thing)),
        }),
      ];
      if (one !== undefined) {
        kinds.push(() => ({ skill: "look up", user: `What colour is the ${one[1]}?`, assistant: one[0] }));
      }
      return random.choice(kinds)();
    },
  };
}

/** Two things at places of a grid. Rows count downwards, columns to the right, both from 0. */
export function drawPositions(random: RandomStream): Passage {
  const size = random.choice([4, 5, 8, 10, 12]);
  const [a, b] = sampleItems(THINGS, 2, random);
  const [rowA, columnA, rowB, columnB] = Array.from({ length: 4 }, () => random.integers(size));
  const skill = "positions";
  return {
    text: `The ${a} is at row ${rowA}, column ${columnA}. The ${b} is at row ${rowB}, column ${columnB}.`,
    ask: (random) =>
      random.choice<() => Exchange>([
        () => ({ skill, user: `Is the ${a} left of the ${b}?`, assistant: yesOrNo(columnA < columnB) }),
        () => ({ skill, user: `Is the ${a} right of the ${b}?`, assistant: yesOrNo(columnA > columnB) }),
        () => ({ skill, user: `Is the ${b} above the ${a}?`, assistant: yesOrNo(rowB < rowA) }),
        () => ({ skill, user: `Is the ${b} below the ${a}?`, assistant: yesOrNo(rowB > rowA) }),
        () => ({ skill, user: "Are they in the same row?", assistant: yesOrNo(rowA === rowB) }),
        () => ({ skill, user: "How many rows lie between them?", assistant: `${Math.abs(rowA - rowB)}` }),
        () => ({ skill, user: "How many columns lie between them?", assistant: `${Math.abs(columnA - columnB)}` }),
        () => ({ skill: "copy", user: `In which row is the ${b}?`, assistant: `${rowB}` }),
        () => ({ skill: "copy", user: `In which column is the ${a}?`, assistant: `${columnA}` }),
      ])(),
  };
}

/** Cards of a hand, an ace counting 1. */
export function drawCards(random: RandomStream): Passage {
  const hand = Array.from({ length: random.integers(2, 5) }, () => random.integers(1, 11));
  const total = hand.reduce((sum, card) => sum + card, 0);
  return {
    text: `Your cards are ${formatList(hand.map(String), "and")}.`,
    ask: (random) => {
      const bound = total + random.integers(-4, 5);
      return random.choice<() => Exchange>([
        () => ({ skill: "add", user: "What is their sum?", assistant: `${total}` }),
        () => ({ skill: "add", user: `Is their sum above ${bound}?`, assistant: yesOrNo(total > bound) }),
        () => ({ skill: "compare", user: "Which is the highest?", assistant: `${Math.max(...hand)}` }),
        () => ({ skill: "lists", user: "How many cards do you have?", assistant: `${hand.length}` }),
      ])();
    },
  };
}
