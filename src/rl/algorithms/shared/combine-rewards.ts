import { sum } from "./arrays.js";
import { invalidArgument } from "../../../core/errors.js";
import { withoutNaN, type NumberArray } from "./statistics.js";

/**
 * Computes each sample's weighted sum of the rewards of several functions, [samples][functions].
 * NaN rewards do not count; a sample with NaN only has NaN. Weights are 1 by default.
 * @throws INVALID_ARGUMENT unless there is one weight per function.
 */
export function combineRewards(perFunction: readonly NumberArray[], weights?: NumberArray): Float64Array {
  return Float64Array.from(perFunction, (rewards, sample) => {
    if (weights !== undefined && weights.length !== rewards.length)
      throw invalidArgument(
        `There are ${weights.length} reward weights, but sample ${sample} has rewards of ${rewards.length} functions.`,
      );
    const weighted = withoutNaN(Array.from(rewards, (reward, i) => reward * (weights?.[i] ?? 1)));
    return weighted.length === 0 ? Number.NaN : sum(weighted);
  });
}

/**
 * Splits samples into consecutive groups. @throws INVALID_ARGUMENT when they do not fill the
 * groups.
 */
export function splitIntoGroups<T>(samples: ArrayLike<T>, size: number): T[][] {
  const all = Array.from(samples);
  if (!Number.isSafeInteger(size) || size < 1 || all.length % size !== 0)
    throw invalidArgument(`${all.length} samples do not fill groups of ${size}.`);
  return Array.from({ length: all.length / size }, (_, i) => all.slice(i * size, (i + 1) * size));
}
