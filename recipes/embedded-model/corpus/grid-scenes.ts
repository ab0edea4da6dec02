import { FROZEN_LAKE_MAPS, generateRandomMap, make } from "../../../src/envs/index.js";
import { frozenLakeText } from "../../../src/envs/toy-text/frozen-lake-text.js";
import type { RandomStream } from "../../../src/tensor/random.js";
import type { Quantity } from "./quantities.js";
import { paraphrase, type Fact, type Scene } from "./scene.js";

const WHOLE = { decimals: 0, plus: false };

/** Draws scenes of FrozenLake (the registered maps and random ones), CliffWalking and Taxi, over all places. */
export function gridScenes(): ((random: RandomStream) => Scene)[] {
  return [frozenLake, cliffWalking(), taxi()];
}

function frozenLake(random: RandomStream): Scene {
  const size = random.choice([4, 4, 8, random.integers(3, 10)]);
  const desc = generateRandomMap(size, random.uniform(0.5, 0.9), random.integers(2 ** 31));
  const registered = random.random() < 0.3 ? FROZEN_LAKE_MAPS[`${size}x${size}`] : undefined;
  const form = frozenLakeText(registered ?? desc, random.random() < 0.6);
  const state = random.integers(size * size);
  const text = form.formatObservation(state, {});
  const replies = form.choices as readonly string[];
  const openings = ["Cross the frozen lake to the goal.", "You walk on a frozen lake.", "Find the goal on the ice."];
  const details = ["Avoid the holes.", "The ice is slippery.", "Rows and columns count from 0."];
  return {
    game: "FrozenLake-v1",
    system: random.random() < 0.5 ? form.systemPrompt : paraphrase(openings, details, replies, random),
    text,
    replies,
    ...place(Math.floor(state / size), state % size, size),
    facts: around(text),
  };
}

function cliffWalking(): (random: RandomStream) => Scene {
  const envs = [make("CliffWalking-v1").text!, make("CliffWalkingSlippery-v1").text!];
  const openings = ["Walk to the goal.", "You walk along a cliff.", "Find the way to the goal past the cliff."];
  const details = ["The goal is at row 3, column 11.", "Do not fall.", "Take few steps."];
  return (random) => {
    const form = random.choice(envs);
    const state = random.integers(48);
    const text = form.formatObservation(state, {});
    const replies = form.choices as readonly string[];
    return {
      game: "CliffWalking-v1",
      system: random.random() < 0.5 ? form.systemPrompt : paraphrase(openings, details, replies, random),
      text,
      replies,
      ...place(Math.floor(state / 12), state % 12, 12),
      facts: around(text),
    };
  };
}

function taxi(): (random: RandomStream) => Scene {
  const form = make("Taxi-v4").text!;
  const openings = ["You drive a taxi.", "Drive the taxi to the passenger, then to the destination."];
  const details = ["Rows count from north to south.", "Pick up the passenger and drop off at the destination."];
  return (random) => {
    const text = form.formatObservation(random.integers(500), {});
    const replies = form.choices as readonly string[];
    const [row, column] = [...text.matchAll(/\d/g)].map(([digit]) => Number(digit));
    return {
      game: "Taxi-v4",
      system: random.random() < 0.5 ? form.systemPrompt : paraphrase(openings, details, replies, random),
      text,
      replies,
      quantities: [whole("the row of the taxi", row, 5), whole("the column of the taxi", column, 5)],
      facts: taxiFacts(text),
    };
  };
}

const whole = (name: string, value: number, limit: number): Quantity => ({
  name,
  limit,
  value,
  text: `${value}`,
  style: WHOLE,
});

function place(row: number, column: number, limit: number): { quantities: Quantity[] } {
  return { quantities: [whole("the row", row, limit), whole("the column", column, limit)] };
}

/** What lies in each direction, from "Left edge, down ice, right hole, up ice." */
function around(text: string): Fact[] {
  const tiles = [...text.matchAll(/\b(left|right|up|down) (\w+)/gi)].map(([, side, tile]) => ({
    side: side.toLowerCase(),
    tile,
  }));
  const kinds = new Set(tiles.map(({ tile }) => tile));
  return [
    ...tiles.map(({ side, tile }) => ({ skill: "look up", question: `What is ${side}?`, answer: tile })),
    ...tiles.map(({ side, tile }) => ({
      skill: "look up",
      question: `Is there ${tile === "hole" ? "a hole" : "ice"} ${side}?`,
      answer: tile === "hole" || tile === "ice" ? "yes" : "no",
    })),
    ...[...kinds].map((kind) => ({
      skill: "count",
      question: `On how many sides is ${kind}?`,
      answer: `${tiles.filter(({ tile }) => tile === kind).length}`,
    })),
  ];
}

function taxiFacts(text: string): Fact[] {
  const yes = (truth: boolean) => (truth ? "yes" : "no");
  const [, taxiPlace] = /Taxi at (row \d, column \d)/.exec(text)!;
  const rider = /Passenger (in taxi|at (row \d, column \d))/.exec(text)!;
  const [, destination] = /Destination (row \d, column \d)/.exec(text)!;
  const open = / Open: ([^.]*)/.exec(text)![1].split(" ");
  return [
    { skill: "look up", question: "Where is the taxi?", answer: taxiPlace },
    { skill: "look up", question: "Where is the destination?", answer: destination },
    { skill: "look up", question: "Where is the passenger?", answer: rider[2] ?? "in taxi" },
    { skill: "look up", question: "Is the passenger in the taxi?", answer: yes(rider[2] === undefined) },
    { skill: "positions", question: "Is the taxi at the destination?", answer: yes(taxiPlace === destination) },
    { skill: "positions", question: "Is the taxi at the passenger?", answer: yes(taxiPlace === rider[2]) },
    ...["south", "north", "east", "west"].map((side) => ({
      skill: "look up",
      question: `Is ${side} open?`,
      answer: yes(open.includes(side)),
    })),
  ];
}
