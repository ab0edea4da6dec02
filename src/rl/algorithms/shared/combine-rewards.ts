import { sum } from "./arrays.js";
import { invalidArgument } from "../../../core/errors.js";
import { withoutNaN, type NumberArray } from "./statistics.js";

/**
 * Rewards of samples, from those of several functions: their weighted sum. A function that gave NaN does not count; a sample that
 * none could score has NaN. `perFunction` is [samples][functions]; weights are 1 by default.
 * Throws INVALID_ARGUMENT when there is not a weight for each function.
 */
export function combineRewards(perFunction: readonly NumberArray[], weights?: NumberArray): Float64Array {
  return Float64Array.from(perFunction, (rewards, sample) => {
    if (weights !== undefined && weights.length !== rewards.length) {
      throw invalidArgument(
        `There are ${weights.length} reward weights, but sample ${sample} has rewards of ${rewards.length} functions.`,
      );
    }
    const weighted = withoutNaN(Array.from(rewards, (reward, i) => reward * (weights?.[i] ?? 1)));
    return weighted.length === 0 ? Number.NaN : sum(weighted);
  });
}

/** Consecutive groups of samples that answer one prompt. Throws INVALID_ARGUMENT when the samples do not fill them. */
export function splitIntoGroups<T>(samples: ArrayLike<T>, size: number): T[][] {
  const all = Array.from(samples);
  if (!Number.isSafeInteger(size) || size < 1 || all.length % size !== 0)
    throw invalidArgument(`${all.length} samples cannot be divided into groups of ${size}.`);
  return Array.from({ length: all.length / size }, (_, i) => all.slice(i * size, (i + 1) * size));
}
