import { invalid } from "./settings.js";

/** Numbers in a row; 1 in a mask where a number counts. */
export type Numbers = ArrayLike<number>;

/** Sum of f over the numbers that count (all, without a mask). */
function total(x: Numbers, mask: Numbers | undefined, f: (value: number) => number): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) if (mask === undefined || mask[i] !== 0) sum += f(x[i]);
  return sum;
}

function count(x: Numbers, mask: Numbers | undefined): number {
  return mask === undefined ? x.length : total(mask, mask, () => 1);
}

/** Mean of the numbers that count. Throws INVALID_ARGUMENT when none does. */
export function mean(x: Numbers, mask?: Numbers): number {
  const n = count(x, mask);
  if (n === 0) throw invalid("There is no mean of no numbers: every value is masked out.");
  return total(x, mask, (value) => value) / n;
}

/** Variance of the numbers that count; `unbiased` divides by n - 1. That of a single number is 0. */
export function variance(x: Numbers, mask?: Numbers, { unbiased = true }: { unbiased?: boolean } = {}): number {
  const centre = mean(x, mask);
  const n = count(x, mask);
  return total(x, mask, (value) => (value - centre) ** 2) / (unbiased ? Math.max(n - 1, 1) : n);
}

export interface WhitenOptions {
  /** 1 for the numbers whose mean and variance are taken; all numbers are then shifted and scaled. */
  readonly mask?: Numbers;
  /** False keeps the mean where it was. */
  readonly shiftMean?: boolean;
}

/** Numbers brought to mean 0 and (unbiased) variance 1, with 1e-8 added to the variance, as TRL's masked_whiten. */
export function whiten(x: Numbers, { mask, shiftMean = true }: WhitenOptions = {}): Float64Array {
  if (x.length === 0) return new Float64Array(0);
  const centre = mean(x, mask);
  const scale = 1 / Math.sqrt(variance(x, mask) + 1e-8);
  return Float64Array.from(x, (value) => (value - centre) * scale + (shiftMean ? 0 : centre));
}
