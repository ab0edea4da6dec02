/**
 * Returns the index at which the running sum of non-negative weights exceeds `target`, a number in
 * [0, sum of weights).
 */
export function sampleIndex(weights: readonly number[], target: number): number {
  let remaining = target;
  const index = weights.findIndex((weight) => (remaining -= weight) < 0);
  return index === -1 ? weights.findLastIndex((weight) => weight > 0) : index;
}
