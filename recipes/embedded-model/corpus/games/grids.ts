import { FROZEN_LAKE_MAPS, generateRandomMap, make } from "../../../../src/envs.js";
import { createFrozenLakeText } from "../../../../src/envs/toy-text/frozen-lake.js";
import { INTEGER_STYLE } from "../number-text.js";
import { makeQuantity } from "../quantities.js";
import { paraphrase, yesOrNo, type ScenarioSampler, type Fact } from "./game.js";

const CLIFF = { rows: 4, columns: 12 };
const TAXI_STATES = 500;

/** FrozenLake (the registered maps and random ones), CliffWalking and Taxi, over all places. */
export function gridScenarios(): readonly ScenarioSampler[] {
  return [frozenLake, cliffWalking(), taxi()];
}

const frozenLake: ScenarioSampler = (random) => {
  const size = random.choice([4, 4, 8, random.integers(3, 10)]);
  const registered = random.random() < 0.3 ? FROZEN_LAKE_MAPS[`${size}x${size}`] : undefined;
  const map = registered ?? generateRandomMap(size, random.uniform(0.5, 0.9), random.integers(2 ** 31));
  const form = createFrozenLakeText(map, random.random() < 0.6);
  const validCompletions = form.choices as readonly string[];
  const openings = ["Cross the frozen lake to the goal.", "You walk on a frozen lake.", "Find the goal on the ice."];
  const details = ["Avoid the holes.", "The ice is slippery.", "Rows and columns count from 0."];
  return {
    id: "FrozenLake-v1",
    system: random.random() < 0.5 ? form.systemPrompt : paraphrase(openings, details, validCompletions, random),
    observe: (random) => {
      const state = random.integers(size * size);
      const text = form.formatObservation(state, {});
      return {
        text,
        validCompletions,
        quantities: positionQuantities(state, size, size - 1),
        facts: surroundingFacts(text),
      };
    },
  };
};

function cliffWalking(): ScenarioSampler {
  const forms = ["CliffWalking-v1", "CliffWalkingSlippery-v1"].map((id) => make(id).text!);
  const openings = ["Walk to the goal.", "You walk along a cliff.", "Find the way to the goal past the cliff."];
  const details = ["The goal is at row 3, column 11.", "Do not fall.", "Take few steps."];
  return (random) => {
    const form = random.choice(forms);
    const validCompletions = form.choices as readonly string[];
    return {
      id: "CliffWalking-v1",
      system: random.random() < 0.5 ? form.systemPrompt : paraphrase(openings, details, validCompletions, random),
      observe: (random) => {
        const state = random.integers(CLIFF.rows * CLIFF.columns);
        const text = form.formatObservation(state, {});
        return {
          text,
          validCompletions,
          quantities: positionQuantities(state, CLIFF.columns, CLIFF.columns - 1),
          facts: surroundingFacts(text),
        };
      },
    };
  };
}

function positionQuantities(state: number, columns: number, limit: number) {
  return [
    makeQuantity("the row", Math.floor(state / columns), [0, limit], INTEGER_STYLE),
    makeQuantity("the column", state % columns, [0, limit], INTEGER_STYLE),
  ];
}

/** What lies in each direction, from "Left edge, down ice, right hole, up ice." */
function surroundingFacts(text: string): Fact[] {
  const tiles = [...text.matchAll(/\b(left|right|up|down) (\w+)/gi)].map(([, side, tile]) => ({
    side: side.toLowerCase(),
    tile,
  }));
  const kinds = [...new Set(tiles.map(({ tile }) => tile))];
  return [
    ...tiles.map(({ side, tile }) => ({ skill: "look up", question: `What is ${side}?`, answer: tile })),
    ...tiles.flatMap(({ side, tile }) =>
      [...kinds.slice(0, 2), "goal"].map((kind) => ({
        skill: "look up",
        question: `Is ${side} ${kind}?`,
        answer: yesOrNo(tile === kind),
      })),
    ),
    ...kinds.map((kind) => ({
      skill: "count",
      question: `How many sides are ${kind}?`,
      answer: `${tiles.filter(({ tile }) => tile === kind).length}`,
    })),
    { skill: "look up", question: "What lies around?", answer: tiles.map(({ tile }) => tile).join(", ") },
  ];
}

function taxi(): ScenarioSampler {
  const form = make("Taxi-v4").text!;
  const validCompletions = form.choices as readonly string[];
  const openings = ["You drive a taxi.", "Drive the taxi to the passenger, then to the destination."];
  const details = ["Rows count from north to south.", "Pick up the passenger and drop off at the destination."];
  return (random) => ({
    id: "Taxi-v4",
    system: random.random() < 0.5 ? form.systemPrompt : paraphrase(openings, details, validCompletions, random),
    observe: (random) => {
      const text = form.formatObservation(random.integers(TAXI_STATES), {});
      const [row, column] = [...text.matchAll(/\d/g)].map(([digit]) => Number(digit));
      const quantities = [
        makeQuantity("the taxi's row", row, [0, 4], INTEGER_STYLE),
        makeQuantity("the taxi's column", column, [0, 4], INTEGER_STYLE),
      ];
      return { text, validCompletions, quantities, facts: taxiFacts(text) };
    },
  });
}

function taxiFacts(text: string): Fact[] {
  const [, taxiPlace] = /Taxi at (row \d, column \d)/.exec(text)!;
  const rider = /Passenger (in taxi|at (row \d, column \d))/.exec(text)!;
  const [, destination] = /Destination (row \d, column \d)/.exec(text)!;
  const open = / Open: ([^.]*)/.exec(text)![1].split(" ");
  const passenger = rider[2] ?? "in taxi";
  return [
    { skill: "look up", question: "Where is the taxi?", answer: taxiPlace },
    { skill: "look up", question: "Where is the destination?", answer: destination },
    { skill: "look up", question: "Where is the passenger?", answer: passenger },
    { skill: "look up", question: "Is the passenger in the taxi?", answer: yesOrNo(rider[2] === undefined) },
    { skill: "positions", question: "Is the taxi at the destination?", answer: yesOrNo(taxiPlace === destination) },
    { skill: "positions", question: "Is the taxi at the passenger?", answer: yesOrNo(taxiPlace === rider[2]) },
    ...directionFacts("the passenger", taxiPlace, passenger),
    ...directionFacts("the destination", taxiPlace, destination),
    ...["south", "north", "east", "west"].map((side) => ({
      skill: "look up",
      question: `Is ${side} open?`,
      answer: yesOrNo(open.includes(side)),
    })),
  ];
}

/** On which side of the taxi something lies; empty for what has no position. */
function directionFacts(what: string, from: string, to: string): Fact[] {
  const [[fromRow, fromColumn], [row, column]] = [from, to].map((place) => (place.match(/\d/g) ?? []).map(Number));
  if (row === undefined) return [];
  const fact = (side: string, lies: boolean) => ({
    skill: "positions",
    question: `Is ${what} ${side} of the taxi?`,
    answer: yesOrNo(lies),
  });
  return [
    fact("north", row < fromRow),
    fact("south", row > fromRow),
    fact("east", column > fromColumn),
    fact("west", column < fromColumn),
  ];
}
