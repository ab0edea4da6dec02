/** Computes log(sum(exp(x))) without overflow; -Infinity for no numbers. */
export function logSumExp(x: readonly number[]): number {
  const max = x.reduce((a, b) => Math.max(a, b), -Infinity);
  if (max === -Infinity) return -Infinity;
  return max + Math.log(x.reduce((sum, value) => sum + Math.exp(value - max), 0));
}
