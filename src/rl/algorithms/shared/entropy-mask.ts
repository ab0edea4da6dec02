import type { NumberArray } from "./statistics.js";

/**
 * Returns 1 for the given fraction of tokens with the highest entropy, 0 for others (Wang et al.
 * 2025, "Beyond the 80/20 rule"). The threshold is the (1 - fraction) quantile of the update's
 * entropies, computed in float32 as torch.quantile.
 */
export function highEntropyMask(entropies: NumberArray, fraction: number): Float64Array {
  const values = Float32Array.from(entropies);
  const threshold = quantile(values.toSorted(), 1 - fraction);
  return Float64Array.from(values, (entropy) => (entropy >= threshold ? 1 : 0));
}

/** Interpolates linearly; in float32, so that ranks near a whole number round as in PyTorch. */
function quantile(sorted: Float32Array, q: number): number {
  const rank = Math.fround(Math.fround(q) * (sorted.length - 1));
  const lower = Math.floor(rank);
  const weight = Math.fround(rank - lower);
  const [low, high] = [sorted[lower], sorted[Math.min(lower + 1, sorted.length - 1)]];
  const step = Math.fround(high - low);
  return weight < 0.5
    ? Math.fround(low + Math.fround(weight * step))
    : Math.fround(high - Math.fround(Math.fround(1 - weight) * step));
}
