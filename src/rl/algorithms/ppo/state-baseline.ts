import { generalizedAdvantages, type GaeSteps } from "../shared/gae.js";

/** States of a sequence of steps by number; equal numbers are equal prompts. */
export interface StepStates {
  readonly states: readonly number[];
  /** State after the last step, if the sequence is partial. */
  readonly next?: number;
}

/** The value head counts as so many returns. */
const HEAD_WEIGHT = 1;
/**
 * The first pass ends partial sequences with the value head's values, the others with those of the
 * pass before.
 */
const PASSES = 3;

/**
 * Returns steps whose values are means of the value head's value and the returns of the other steps
 * of the batch in the same state. A step's own return is left out, so its advantage stays unbiased;
 * the value of a state that occurs once does not change.
 */
export function withStateBaselines(
  rows: readonly GaeSteps[],
  states: readonly StepStates[],
  gamma: number,
): readonly GaeSteps[] {
  let steps = rows;
  for (let pass = 0; pass < PASSES; pass++) {
    const returns = steps.map((row) => generalizedAdvantages(row, { gamma, lam: 1 }).returns);
    const sums = new Map<number, { sum: number; count: number }>();
    returns.forEach((row, i) =>
      row.forEach((value, t) => {
        const { sum, count } = sums.get(states[i].states[t]) ?? { sum: 0, count: 0 };
        sums.set(states[i].states[t], { sum: sum + value, count: count + 1 });
      }),
    );
    const blend = (headValue: number, state: number, own?: number): number => {
      const { sum, count } = sums.get(state) ?? { sum: 0, count: 0 };
      const [others, otherCount] = own === undefined ? [sum, count] : [sum - own, count - 1];
      return (HEAD_WEIGHT * headValue + others) / (HEAD_WEIGHT + otherCount);
    };
    steps = rows.map((row, i) => {
      const { states: own, next } = states[i];
      const last = own.length - 1;
      return {
        ...row,
        values: Float64Array.from(own, (state, t) => blend(row.values[t], state, returns[i][t])),
        bootstrap:
          next === undefined
            ? row.bootstrap
            : Float64Array.from(row.bootstrap ?? [], (value, t) => (t < last ? value : blend(value, next))),
      };
    });
  }
  return steps;
}
