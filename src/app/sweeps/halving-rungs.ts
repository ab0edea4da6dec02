import { invalidArgument } from "../../core/errors.js";

/** A rung of a sweep: trains this many trials up to a fraction of their runs. */
export interface Rung {
  readonly trials: number;
  /** Fraction of a whole run; 1 in the last rung. */
  readonly share: number;
}

/** The only rung of a sweep without halving. */
export function singleRung(trials: number): readonly Rung[] {
  return [{ trials, share: 1 }];
}

/**
 * Plans successive halving (Jamieson & Talwalkar 2016) as a bracket of Hyperband (Li et al. 2018):
 * rung i of s trains the floor(n / reduction^i) best trials up to 1 / reduction^(s - 1 - i) of a
 * run. By default, there are as many rungs as leave at least one trial. @throws INVALID_ARGUMENT
 * for too few trials.
 */
export function planHalvingRungs(
  trials: number,
  { reduction, rungs }: { readonly reduction: number; readonly rungs?: number },
): readonly Rung[] {
  let maxRungs = 1;
  while (trials >= reduction ** maxRungs) maxRungs++;
  if (maxRungs === 1)
    throw invalidArgument(
      `Successive halving with a reduction of ${reduction} needs at least ${reduction} trials, got ${trials}.`,
    );
  const count = rungs ?? maxRungs;
  if (count > maxRungs)
    throw invalidArgument(
      `${trials} trials allow at most ${maxRungs} rungs with a reduction of ${reduction}, got ${count}. ` +
        "Use fewer rungs or more trials.",
    );
  return Array.from({ length: count }, (_, i) => ({
    trials: Math.floor(trials / reduction ** i),
    share: 1 / reduction ** (count - 1 - i),
  }));
}
