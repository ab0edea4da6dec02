import { make } from "../registry/make.js";
import type { Env } from "../env.js";
import type { Info } from "../info.js";
import type { BlackjackObservation } from "../toy-text/blackjack-text.js";
import type { TabularEnv } from "../toy-text/tabular-env.js";
import { chooseBestAction } from "./blackjack-solver.js";
import { GridPolicy } from "./grid-solver.js";
import { solveTabular } from "./tabular-solver.js";

/** An action for what is seen. */
export type Policy<Observation = unknown, Action = unknown> = PolicyMethod<Observation, Action>["act"];

interface PolicyMethod<Observation, Action> {
  // As a method, so that a policy of one observation type is also a policy of unknown observations.
  act(observation: Observation, info: Info): Action;
}

const createBlackjackExpert =
  (): Policy<BlackjackObservation, number> =>
  ([sum, dealerCard, ace]) =>
    chooseBestAction(sum, dealerCard, ace === 1);

/** By exact value iteration; a step limit makes it prefer short ways. */
function createTabularExpert(env: Env): Policy<number, number> {
  const limit = env.spec?.maxEpisodeSteps;
  const { policy } = solveTabular(env.unwrapped as TabularEnv, limit === undefined ? 1 : 1 - 1 / limit);
  return (state) => policy[state];
}

/** Pushes the cart under the pole, a little early, and back to the middle. */
const createCartPoleExpert =
  (): Policy<Float32Array, number> =>
  ([position, velocity, angle, angularVelocity]) =>
    angle + 0.5 * angularVelocity + 0.1 * velocity + 0.02 * position > 0 ? 1 : 0;

/** The same environment without its wrappers, to be stepped on a grid. */
function makeUnwrapped<Observation, Action>({ spec }: Env): Env<Observation, Action> {
  if (spec === undefined) throw new TypeError("Experts know environments that come from make().");
  return make<Observation, Action>(spec).unwrapped as Env<Observation, Action>;
}

const toPair = ([first, second]: Float32Array) => [first, second] as const;

function createMountainCarExpert(env: Env): Policy<Float32Array, number> {
  const policy = new GridPolicy<Float32Array, number>({
    env: makeUnwrapped(env),
    axes: [
      { low: -1.2, high: 0.6, points: 121 },
      { low: -0.07, high: 0.07, points: 101 },
    ],
    actions: [0, 1, 2],
    discount: 0.9999,
    sweeps: 150,
    stateAt: (position, velocity) => [position, velocity],
    coordinates: toPair,
  });
  return (observation) => policy.act(observation);
}

const listForces = (limit: number, count: number) =>
  Array.from({ length: count }, (_, i) => Float32Array.of(limit * ((2 * i) / (count - 1) - 1)));

function createContinuousMountainCarExpert(env: Env): Policy<Float32Array, Float32Array> {
  const policy = new GridPolicy<Float32Array, Float32Array>({
    env: makeUnwrapped(env),
    axes: [
      { low: -1.2, high: 0.6, points: 121 },
      { low: -0.07, high: 0.07, points: 101 },
    ],
    actions: listForces(1, 9),
    discount: 0.9999,
    sweeps: 400,
    stateAt: (position, velocity) => ({ state: [position, velocity], isFirstStep: false }),
    coordinates: toPair,
  });
  return (observation) => policy.act(observation);
}

function createPendulumExpert(env: Env): Policy<Float32Array, Float32Array> {
  const policy = new GridPolicy<Float32Array, Float32Array>({
    env: makeUnwrapped(env),
    axes: [
      { low: -Math.PI, high: Math.PI, points: 121 },
      { low: -8, high: 8, points: 101 },
    ],
    actions: listForces(2, 9),
    discount: 0.99,
    sweeps: 200,
    stateAt: (angle, velocity) => ({ state: [angle, velocity], lastTorque: 0 }),
    coordinates: ([cosine, sine, velocity]) => [Math.atan2(sine, cosine), velocity],
  });
  return (observation) => policy.act(observation);
}

/** Works with the second link's swing and the first one's lean; the weights come from a random search. */
const createAcrobotExpert =
  (): Policy<Float32Array, number> =>
  ([, sine1, , sine2, , velocity2]) =>
    0.6 * velocity2 + 1.7 * sine1 + 0.1 * sine2 > 0 ? 2 : 0;

/** Scripted or solved players of the environments by id; they take an environment from `make` and give its policy. */
export const experts: Readonly<Record<string, (env: Env) => Policy>> = {
  "Blackjack-v1": createBlackjackExpert,
  "FrozenLake-v1": createTabularExpert,
  "FrozenLake8x8-v1": createTabularExpert,
  "CliffWalking-v1": createTabularExpert,
  "CliffWalkingSlippery-v1": createTabularExpert,
  "Taxi-v4": createTabularExpert,
  "CartPole-v0": createCartPoleExpert,
  "CartPole-v1": createCartPoleExpert,
  "MountainCar-v0": createMountainCarExpert,
  "MountainCarContinuous-v0": createContinuousMountainCarExpert,
  "Acrobot-v1": createAcrobotExpert,
  "Pendulum-v1": createPendulumExpert,
};
