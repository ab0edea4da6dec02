import { make, type Env } from "../../../src/envs/index.js";
import type { RandomStream } from "../../../src/tensor/random.js";
import { rounded, spread, written, type NumberStyle } from "./number-text.js";
import type { Quantity } from "./quantities.js";
import { paraphrase, type Scene } from "./scene.js";

interface Reading {
  readonly name: string;
  readonly limit: number;
  readonly decimals: number;
}

interface ControlGame {
  readonly id: string;
  readonly readings: readonly Reading[];
  /** The environment's observation with these readings. */
  readonly observation: (readings: readonly number[]) => readonly number[];
  readonly openings: readonly string[];
  readonly details: readonly string[];
}

const PI = 3.1415;

const GAMES: readonly ControlGame[] = [
  {
    id: "CartPole-v1",
    readings: [
      { name: "the cart position", limit: 2.4, decimals: 3 },
      { name: "the cart velocity", limit: 3, decimals: 3 },
      { name: "the pole angle", limit: 0.25, decimals: 3 },
      { name: "the angular velocity", limit: 3, decimals: 3 },
    ],
    observation: (readings) => readings,
    openings: [
      "Keep pole balanced on cart.",
      "Keep pole balanced on cart. Current state:",
      "Balance the pole on the cart.",
      "You control a cart with a pole on it.",
      "A pole stands on a cart. Do not let it fall.",
    ],
    details: ["You see the current state.", "Push the cart to one side.", "Every step counts one point."],
  },
  {
    id: "MountainCar-v0",
    readings: [
      { name: "the car position", limit: 1.2, decimals: 3 },
      { name: "the velocity", limit: 0.07, decimals: 4 },
    ],
    observation: (readings) => readings,
    openings: ["Drive the car up the hill.", "A weak car stands in a valley.", "You drive a car in a valley."],
    details: ["Its lowest point is at -0.5.", "The goal is at +0.5 on the right.", "Be quick."],
  },
  {
    id: "MountainCarContinuous-v0",
    readings: [
      { name: "the car position", limit: 1.2, decimals: 3 },
      { name: "the velocity", limit: 0.07, decimals: 4 },
    ],
    observation: (readings) => readings,
    openings: [],
    details: [],
  },
  {
    id: "Acrobot-v1",
    readings: [
      { name: "the first angle", limit: PI, decimals: 2 },
      { name: "the first velocity", limit: 6, decimals: 2 },
      { name: "the second angle", limit: PI, decimals: 2 },
      { name: "the second velocity", limit: 9, decimals: 2 },
    ],
    observation: ([angle1, velocity1, angle2, velocity2]) => [
      Math.cos(angle1),
      Math.sin(angle1),
      Math.cos(angle2),
      Math.sin(angle2),
      velocity1,
      velocity2,
    ],
    openings: ["Two links hang from a bar.", "Swing a double pendulum up.", "You control the joint of two links."],
    details: ["Swing the tip above the bar.", "Your action is the torque in the joint.", "Be quick."],
  },
  {
    id: "Pendulum-v1",
    readings: [
      { name: "the angle", limit: PI, decimals: 2 },
      { name: "the angular velocity", limit: 8, decimals: 2 },
    ],
    observation: ([angle, velocity]) => [Math.cos(angle), Math.sin(angle), velocity],
    openings: [],
    details: [],
  },
];

/** The greatest force where an action is a number. */
const FORCES: Readonly<Record<string, number>> = { "MountainCarContinuous-v0": 1, "Pendulum-v1": 2 };

/** Draws scenes of Gymnasium's classic control environments, over all of their observations. */
export function controlScenes(): ((random: RandomStream) => Scene)[] {
  return GAMES.map((game) => sceneOf(game, make(game.id)));
}

function sceneOf(game: ControlGame, { text }: Env): (random: RandomStream) => Scene {
  const form = text!;
  const names = form.choices as readonly string[];
  const force = FORCES[game.id];
  const replies = force === undefined ? names : forces(force);
  return (random) => {
    const values = game.readings.map(({ limit, decimals }) => rounded(spread(random, limit), { decimals, plus: true }));
    const plus = game.id !== "CartPole-v1" || random.random() < 0.7;
    const observation = form.formatObservation(Float32Array.from(game.observation(values)), {});
    const own = game.openings.length === 0 || random.random() < 0.5;
    return {
      game: game.id,
      system: own ? form.systemPrompt : paraphrase(game.openings, game.details, names, random),
      text: plus ? observation : observation.replaceAll("+", ""),
      replies,
      quantities: game.readings.map((reading, i) => quantity(reading, values[i], { decimals: reading.decimals, plus })),
    };
  };
}

function quantity({ name, limit }: Reading, value: number, style: NumberStyle): Quantity {
  return { name, limit, value, style, text: written(value, style) };
}

/** All forces of two decimals. */
function forces(limit: number): string[] {
  const style = { decimals: 2, plus: true };
  return Array.from({ length: 200 * limit + 1 }, (_, i) => written((i - 100 * limit) / 100, style));
}
