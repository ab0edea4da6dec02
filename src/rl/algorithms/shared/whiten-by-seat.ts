import { concatenate } from "./arrays.js";
import { whiten, type NumberArray, type WhitenOptions } from "./statistics.js";

/**
 * Normalizes rows of numbers together with those of the same seat. In a game over all seats, the
 * advantages of one seat would move with the returns of the other. Rows without a seat are
 * normalized together.
 */
export function whitenBySeat(
  rows: readonly NumberArray[],
  seats: readonly (number | undefined)[],
  options: Omit<WhitenOptions, "mask"> = {},
): Float64Array[] {
  const whitened: Float64Array[] = [];
  for (const seat of new Set(seats)) {
    const members = seats.flatMap((other, i) => (other === seat ? [i] : []));
    const all = whiten(concatenate(members.map((i) => rows[i])), options);
    let start = 0;
    for (const i of members) whitened[i] = all.subarray(start, (start += rows[i].length));
  }
  return whitened;
}
