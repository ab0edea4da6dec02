import { make } from "../../../../src/envs.js";
import { roundToStyle, drawSpread, formatNumber } from "../number-text.js";
import { makeQuantity } from "../quantities.js";
import { paraphrase, type ScenarioSampler } from "./game.js";

interface Reading {
  readonly name: string;
  readonly limit: number;
  readonly decimals: number;
}

interface ControlTask {
  readonly id: string;
  readonly readings: readonly Reading[];
  /** The environment's observation with these readings; they themselves unless given. */
  readonly observation?: (readings: readonly number[]) => readonly number[];
  /** Other words for the task; without them the environment's own are always used. */
  readonly openings?: readonly string[];
  readonly details?: readonly string[];
  /** The greatest force, where an action is a number. */
  readonly force?: number;
}

/** Just below pi, so that no angle is turned round. */
const PI = 3.1415;

const CAR: readonly Reading[] = [
  { name: "car position", limit: 1.2, decimals: 3 },
  { name: "velocity", limit: 0.07, decimals: 4 },
];

const GAMES: readonly ControlTask[] = [
  {
    id: "CartPole-v1",
    readings: [
      { name: "cart position", limit: 2.4, decimals: 3 },
      { name: "cart velocity", limit: 3, decimals: 3 },
      { name: "pole angle", limit: 0.25, decimals: 3 },
      { name: "angular velocity", limit: 3, decimals: 3 },
    ],
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
    readings: CAR,
    openings: ["Drive the car up the hill.", "A weak car stands in a valley.", "You drive a car in a valley."],
    details: ["Its lowest point is at -0.5.", "The goal is at +0.5 on the right.", "Be quick."],
  },
  { id: "MountainCarContinuous-v0", readings: CAR, force: 1 },
  {
    id: "Acrobot-v1",
    readings: [
      { name: "first angle", limit: PI, decimals: 2 },
      { name: "first velocity", limit: 6, decimals: 2 },
      { name: "second angle", limit: PI, decimals: 2 },
      { name: "second velocity", limit: 9, decimals: 2 },
    ],
    observation: ([angle1, velocity1, angle2, velocity2]) => {
      const sides = [angle1, angle2].flatMap((angle) => [Math.cos(angle), Math.sin(angle)]);
      return [...sides, velocity1, velocity2];
    },
    openings: ["Two links hang from a bar.", "Swing a double pendulum up.", "You control the joint of two links."],
    details: ["Swing the tip above the bar.", "Your action is the torque in the joint.", "Be quick."],
  },
  {
    id: "Pendulum-v1",
    readings: [
      { name: "angle", limit: PI, decimals: 2 },
      { name: "angular velocity", limit: 8, decimals: 2 },
    ],
    observation: ([angle, velocity]) => [Math.cos(angle), Math.sin(angle), velocity],
    force: 2,
  },
];

/** Gymnasium's classic control environments; numbers with and without plus signs. */
export function controlScenarios(): readonly ScenarioSampler[] {
  return GAMES.map(makeScenarioSampler);
}

function makeScenarioSampler({
  id,
  readings,
  observation = (same) => same,
  openings,
  details = [],
  force,
}: ControlTask): ScenarioSampler {
  const form = make(id).text!;
  const names = form.choices as readonly string[];
  const validCompletions = force === undefined ? names : listForces(force);
  return (random) => {
    const plus = id !== "CartPole-v1" || random.random() < 0.7;
    const own = openings === undefined || random.random() < 0.5;
    return {
      id,
      system: own ? form.systemPrompt : paraphrase(openings, details, names, random),
      observe: (random) => {
        const quantities = readings.map(({ name, limit, decimals }) => {
          const style = { decimals, plus };
          return makeQuantity(`the ${name}`, roundToStyle(drawSpread(random, limit), style), [-limit, limit], style);
        });
        const values = observation(quantities.map(({ value }) => value));
        const text = form.formatObservation(Float32Array.from(values), {});
        return { text: plus ? text : text.replaceAll("+", ""), validCompletions, quantities };
      },
    };
  };
}

/** All forces of two decimals. */
function listForces(limit: number): readonly string[] {
  const style = { decimals: 2, plus: true };
  return Array.from({ length: 200 * limit + 1 }, (_, i) => formatNumber((i - 100 * limit) / 100, style));
}
