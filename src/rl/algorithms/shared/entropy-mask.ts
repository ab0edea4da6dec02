import type { NumberArray } from "./statistics.js";

/**
 * 1 for the tokens of the highest entropy, `share` of all, and 0 for the others (Wang et al. 2025, "Beyond the 80/20 rule").
 * The threshold is the (1 - share) quantile of the update's entropies, as torch.quantile gives it in float32.
 */
export function highEntropyMask(entropies: NumberArray, fraction: number): Float64Array {
  const values = Float32Array.from(entropies);
  const threshold = quantile(values.toSorted(), 1 - fraction);
  return Float64Array.from(values, (entropy) => (entropy >= threshold ? 1 : 0));
}

/** Linear between neighbors; in float32, so that a rank that is nearly whole is rounded as PyTorch does. */
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
