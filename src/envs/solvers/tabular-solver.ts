import type { Env } from "../env.js";
import type { Policy } from "../policy.js";
import type { TabularEnv, Transition, TransitionTable } from "../toy-text/tabular-env.js";

const CONVERGENCE_THRESHOLD = 1e-12;
const MAX_SWEEPS = 1_000_000;

/** Expected return of and best action in every state. */
interface TabularSolution {
  readonly values: Float64Array;
  readonly policy: Int32Array;
}

function computeActionValue(outcomes: readonly Transition[], values: Float64Array, discount: number): number {
  return outcomes.reduce((sum, { probability, reward, state, terminated }) => {
    return sum + probability * (reward + (terminated ? 0 : discount * values[state]));
  }, 0);
}

/**
 * Computes values and actions of the best policy (value iteration, Bellman 1957). A discount below
 * 1 prefers short paths, which matters under a step limit.
 */
export function solveTabular({ transitions }: TabularEnv, discount = 1): TabularSolution {
  const listActionValues = (actions: TransitionTable[number]) =>
    actions.map((outcomes) => computeActionValue(outcomes, values, discount));
  let values: Float64Array = new Float64Array(transitions.length);
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep++) {
    const next = Float64Array.from(transitions, (actions) => Math.max(...listActionValues(actions)));
    const change = next.reduce((largest, value, state) => Math.max(largest, Math.abs(value - values[state])), 0);
    values = next;
    if (change < CONVERGENCE_THRESHOLD) break;
  }
  const policy = Int32Array.from(transitions, (actions) => {
    const actionValues = listActionValues(actions);
    // Ties within rounding count as equal, so that the policy does not depend on the last digit.
    const best = Math.max(...actionValues);
    return actionValues.findIndex((value) => value >= best - 1e-9);
  });
  return { values, policy };
}

/**
 * Returns the optimal policy by value iteration; a step limit becomes a discount, which prefers
 * short paths.
 */
export function createTabularExpert(env: Env): Policy {
  const limit = env.spec?.maxEpisodeSteps;
  const { policy } = solveTabular(env.unwrapped as TabularEnv, limit === undefined ? 1 : 1 - 1 / limit);
  return (state) => policy[state as number];
}
