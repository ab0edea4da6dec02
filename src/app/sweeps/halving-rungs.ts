import { invalidArgument } from "../../core/settings.js";

/** A part of a sweep: so many trials are trained until so much of their runs is done. */
export interface Rung {
  readonly trials: number;
  /** Of a whole run; the last rung's is 1. */
  readonly share: number;
}

/** The only rung of a sweep that trains every trial to its end. */
export function singleRung(trials: number): readonly Rung[] {
  return [{ trials, share: 1 }];
}

/**
 * Successive halving (Jamieson & Talwalkar 2016) as a bracket of Hyperband (Li et al. 2018): rung i of s trains the
 * floor(n / reduction^i) best trials until 1 / reduction^(s - 1 - i) of a run is done. Without a number of rungs there are as
 * many as leave one trial at least. Throws INVALID_ARGUMENT for too few trials.
 */
export function planHalvingRungs(
  trials: number,
  { reduction, rungs }: { readonly reduction: number; readonly rungs?: number },
): readonly Rung[] {
  let maxRungs = 1;
  while (trials >= reduction ** maxRungs) maxRungs++;
  if (maxRungs === 1)
    throw invalidArgument(
      `Successive halving with a reduction of ${reduction} needs ${reduction} trials or more, not ${trials}.`,
    );
  const count = rungs ?? maxRungs;
  if (count > maxRungs) {
    throw invalidArgument(
      `${trials} trials are used up after ${maxRungs} rungs with a reduction of ${reduction}, so there cannot be ${count}. ` +
        "Ask for fewer rungs or more trials.",
    );
  }
  return Array.from({ length: count }, (_, i) => ({
    trials: Math.floor(trials / reduction ** i),
    share: 1 / reduction ** (count - 1 - i),
  }));
}
