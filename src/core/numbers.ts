/** Computes the mean; NaN for no numbers. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Computes log(sum(exp(x))) without overflow; -Infinity for no numbers. */
export function logSumExp(x: readonly number[]): number {
  const max = x.reduce((a, b) => Math.max(a, b), -Infinity);
  if (max === -Infinity) return -Infinity;
  return max + Math.log(x.reduce((sum, value) => sum + Math.exp(value - max), 0));
}

/** Whether all numbers are finite. */
export function isAllFinite(values: Float32Array): boolean {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) return false;
  return true;
}

/** Returns the number of elements of a tensor with this shape. */
export function countElements(shape: readonly number[]): number {
  let count = 1;
  for (const dim of shape) count *= dim;
  return count;
}
