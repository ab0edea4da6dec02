import { expect, it } from "vitest";
import { solveLinear } from "../../../../test/support/solve-linear.js";
import { CartPoleEnv } from "../../../envs/classic-control/cart-pole.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { generalizedAdvantages } from "../shared/gae.js";
import { mean, variance, whiten } from "../shared/statistics.js";

/**
 * What docs/decisions/cartpole-credit.md tells: which way generalized advantages push a policy that
 * lets the cart drift.
 */
const GAMMA = 0.99;
const LANES = 64;
const STEPS = 1536;
const STEP_LIMIT = 500;
/** Turns of an update, for which signal is compared with noise. */
const BATCH = 2048;
const RIGHT = 1;

type State = Float32Array;

/**
 * A step of play: `next` is the state it led to, `end` whether the pole fell ("fell") or the step
 * limit was reached ("cut").
 */
interface Step {
  readonly state: State;
  readonly next: State;
  readonly action: number;
  readonly rightProbability: number;
  readonly end: "fell" | "cut" | undefined;
}

/** Balances the pole, and does not look at the cart. */
function rightProbability([, , angle, angularVelocity]: State): number {
  return 1 / (1 + Math.exp(-Math.max(-4, Math.min(4, 15 * angle + 6 * angularVelocity))));
}

/** STEPS steps in a row of one lane after another, each of episodes that follow one another. */
function play(seed: number): Step[][] {
  const random = new RandomStream(seed);
  return Array.from({ length: LANES }, () => {
    const env = new CartPoleEnv();
    let state = env.reset({ seed: random.integers(0, 2 ** 31) }).observation;
    let turn = 0;
    return Array.from({ length: STEPS }, () => {
      const probability = rightProbability(state);
      const action = random.random() < probability ? RIGHT : 0;
      const { observation: next, terminated } = env.step(action);
      const end = terminated ? "fell" : ++turn === STEP_LIMIT ? "cut" : undefined;
      const step: Step = { state, next, action, rightProbability: probability, end };
      if (end !== undefined) turn = 0;
      state = end === undefined ? next : env.reset().observation;
      return step;
    });
  });
}

const scaled = ([position, velocity, angle, angularVelocity]: State) =>
  [position / 2.4, velocity, angle / 0.1, angularVelocity / 0.5].map((x) => Math.max(-2.5, Math.min(2.5, x)));

/**
 * Powers of each number on its own: a sum of what position, velocity, angle and angular velocity
 * say one by one.
 */
const additive = (state: State) => [1, ...scaled(state).flatMap((x) => [x, x ** 2, x ** 3, x ** 4])];

/** All products of up to four of the numbers. */
function withProducts(state: State): number[] {
  const numbers = scaled(state);
  const all = [1];
  let longest = [{ product: 1, last: 0 }];
  for (let factors = 1; factors <= 4; factors++) {
    longest = longest.flatMap(({ product, last }) =>
      numbers.slice(last).map((x, i) => ({ product: product * x, last: last + i })),
    );
    all.push(...longest.map(({ product }) => product));
  }
  return all;
}

interface ValuedStep extends Step {
  readonly value: number;
  readonly nextValue: number;
}

/**
 * The value function over these features that comes nearest to the discounted rewards that
 * followed, by least squares.
 */
function fitValue(lanes: readonly (readonly Step[])[], features: (state: State) => number[]): (state: State) => number {
  const rows = lanes.map((lane) => lane.map(({ state }) => features(state)));
  const n = rows[0][0].length;
  const zeros = () => Array.from({ length: n }, () => 0);
  const squares = Array.from({ length: n }, zeros);
  for (const row of rows.flat())
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) squares[i][j] += row[i] * row[j];
  let weights = squares.map((_, i) => (i === 0 ? 0.7 / (1 - GAMMA) : 0));
  const value = (state: State) => features(state).reduce((sum, x, i) => sum + x * weights[i], 0);
  // What follows a cut is worth what the fit before says.
  for (let round = 0; round < 4; round++) {
    const products = zeros();
    lanes.forEach((lane, number) => {
      let following = value(lane.at(-1)!.next);
      for (let t = lane.length - 1; t >= 0; t--) {
        const { end, next } = lane[t];
        following = 1 + GAMMA * (end === "fell" ? 0 : end === "cut" ? value(next) : following);
        for (let i = 0; i < n; i++) products[i] += rows[number][t][i] * following;
      }
    });
    weights = solveLinear(squares, products);
  }
  return value;
}

function withValues(lanes: readonly (readonly Step[])[], features: (state: State) => number[]): ValuedStep[][] {
  const value = fitValue(lanes, features);
  return lanes.map((lane) => lane.map((step) => ({ ...step, value: value(step.state), nextValue: value(step.next) })));
}

/**
 * The policy gradient of an update of BATCH turns, in standard errors, in two directions: a logit
 * of RIGHT that grows with the cart's position, and with its velocity. Segments of `length` turns
 * are cut as training cuts them.
 */
function signals(lanes: readonly (readonly ValuedStep[])[], length: number, lam: number) {
  const steps: ValuedStep[] = [];
  const advantages: number[] = [];
  for (const lane of lanes) {
    for (let start = 0; start + length <= lane.length; start += length) {
      const segment = lane.slice(start, start + length);
      const found = generalizedAdvantages(
        {
          rewards: segment.map(() => 1),
          values: segment.map(({ value }) => value),
          terminated: segment.map(({ end }) => end === "fell"),
          truncated: segment.map(({ end }) => end === "cut"),
          bootstrap: segment.map(({ nextValue }) => nextValue),
        },
        { gamma: GAMMA, lam },
      );
      steps.push(...segment);
      advantages.push(...found.advantages);
    }
  }
  const whitened = whiten(Float64Array.from(advantages));
  return [0, 1].map((i) => {
    const terms = steps.map(({ state, action, rightProbability: p }, t) => whitened[t] * (action - p) * state[i]);
    return mean(terms) * Math.sqrt(BATCH / variance(terms));
  });
}

const lanes = play(1);
const valued = { products: withValues(lanes, withProducts), sum: withValues(lanes, additive) };

// Positive is right: a cart that is too far right must first be pushed right, so that the pole
// leans to the left.
it.each([
  { value: "products", length: 32, lam: 0.8, position: 9.7, velocity: 10.2 },
  { value: "products", length: 128, lam: 0.99, position: 4.2, velocity: 4.7 },
  { value: "sum", length: 16, lam: 0.95, position: -2.8, velocity: -2.8 },
  { value: "sum", length: 32, lam: 0.8, position: -9.1, velocity: -9.9 },
  { value: "sum", length: 32, lam: 0.95, position: -1.3, velocity: -0.9 },
  { value: "sum", length: 64, lam: 0.99, position: 0.7, velocity: 1.2 },
  { value: "sum", length: 128, lam: 0.95, position: -0.2, velocity: 0.3 },
  { value: "sum", length: 128, lam: 0.99, position: 1.4, velocity: 2.1 },
] as const)("signal of $length turns, lambda $lam, value $value", ({ value, length, lam, position, velocity }) => {
  const found = signals(valued[value], length, lam);
  expect(found[0]).toBeCloseTo(position, 0);
  expect(found[1]).toBeCloseTo(velocity, 0);
});
