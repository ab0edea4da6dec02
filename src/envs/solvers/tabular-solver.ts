import type { Env } from "../env.js";
import type { Policy } from "../policy.js";
import type { TabularEnv, Transition } from "../toy-text/tabular-env.js";

const CONVERGENCE_THRESHOLD = 1e-12;
const MAX_SWEEPS = 1_000_000;

/** Expected return of and best action in every state. */
export interface TabularSolution {
  readonly values: Float64Array;
  readonly policy: Int32Array;
}

function computeActionValue(outcomes: readonly Transition[], values: Float64Array, discount = 1): number {
  return outcomes.reduce((sum, { probability, reward, state, terminated }) => {
    return sum + probability * (reward + (terminated ? 0 : discount * values[state]));
  }, 0);
}

/** Backs up every state once: the mean over actions, or the value of the best one. */
function backUpValues(env: TabularEnv, values: Float64Array, choose: "best" | "random", discount = 1): Float64Array {
  return Float64Array.from(env.transitions, (actions) => {
    const actionValues = actions.map((outcomes) => computeActionValue(outcomes, values, discount));
    return choose === "best"
      ? Math.max(...actionValues)
      : actionValues.reduce((sum, value) => sum + value, 0) / actionValues.length;
  });
}

/**
 * Computes values and actions of the best policy (value iteration, Bellman 1957). A discount below 1 prefers short paths,
 * which matters under a step limit.
 */
export function solveTabular(env: TabularEnv, discount = 1): TabularSolution {
  const values = iterateValues(env, "best", discount);
  const policy = Int32Array.from(env.transitions, (actions) => {
    const actionValues = actions.map((outcomes) => computeActionValue(outcomes, values, discount));
    // Ties within rounding count as equal, so that the policy does not depend on the last digit.
    const best = Math.max(...actionValues);
    return actionValues.findIndex((value) => value >= best - 1e-9);
  });
  return { values, policy };
}

function iterateValues(env: TabularEnv, choose: "best" | "random", discount: number): Float64Array {
  let values: Float64Array = new Float64Array(env.transitions.length);
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep++) {
    const next = backUpValues(env, values, choose, discount);
    const change = next.reduce((largest, value, state) => Math.max(largest, Math.abs(value - values[state])), 0);
    values = next;
    if (change < CONVERGENCE_THRESHOLD) break;
  }
  return values;
}

/**
 * Computes the expected return of an episode of best or random actions. With a step limit the best
 * action may depend on the remaining steps.
 */
export function computeExpectedReturn(env: TabularEnv, choose: "best" | "random", steps = Infinity): number {
  let values: Float64Array = new Float64Array(env.transitions.length);
  if (steps === Infinity) values = iterateValues(env, choose, 1);
  else for (let step = 0; step < steps; step++) values = backUpValues(env, values, choose);
  return computeStartValue(env, values);
}

/** Computes the expected return of a policy of the state alone, within a step limit. */
export function computePolicyReturn(env: TabularEnv, policy: Int32Array, steps: number): number {
  let values: Float64Array = new Float64Array(env.transitions.length);
  for (let step = 0; step < steps; step++) {
    const last = values;
    values = Float64Array.from(env.transitions, (actions, state) => computeActionValue(actions[policy[state]], last));
  }
  return computeStartValue(env, values);
}

function computeStartValue(env: TabularEnv, values: Float64Array): number {
  return env.initialDistribution.reduce((sum, probability, state) => sum + probability * values[state], 0);
}

/** Returns the optimal policy by value iteration; a step limit becomes a discount, which prefers short paths. */
export function createTabularExpert(env: Env): Policy {
  const limit = env.spec?.maxEpisodeSteps;
  const { policy } = solveTabular(env.unwrapped as TabularEnv, limit === undefined ? 1 : 1 - 1 / limit);
  return (state) => policy[state as number];
}
