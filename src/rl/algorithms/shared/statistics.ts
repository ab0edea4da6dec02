import { invalidArgument } from "../../../core/errors.js";

/** Array of numbers; as a mask, nonzero entries select. */
export type NumberArray = ArrayLike<number>;

/** Sums f over the selected numbers (all, without a mask). */
function maskedSum(x: NumberArray, mask: NumberArray | undefined, f: (value: number) => number): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) if (mask === undefined || mask[i] !== 0) sum += f(x[i]);
  return sum;
}

function maskedCount(x: NumberArray, mask: NumberArray | undefined): number {
  return mask === undefined ? x.length : maskedSum(mask, mask, () => 1);
}

/** Mean of the selected numbers. @throws INVALID_ARGUMENT when none is selected. */
export function mean(x: NumberArray, mask?: NumberArray): number {
  const n = maskedCount(x, mask);
  if (n === 0) throw invalidArgument("There is no mean of no numbers: every value is masked out.");
  return maskedSum(x, mask, (value) => value) / n;
}

/** Variance of the selected numbers; `unbiased` divides by n - 1. 0 for a single number. */
export function variance(x: NumberArray, mask?: NumberArray, { unbiased = true }: { unbiased?: boolean } = {}): number {
  const center = mean(x, mask);
  const n = maskedCount(x, mask);
  return maskedSum(x, mask, (value) => (value - center) ** 2) / (unbiased ? Math.max(n - 1, 1) : n);
}

export interface WhitenOptions {
  /** Selects the numbers that define mean and variance; all numbers are transformed. */
  readonly mask?: NumberArray;
  /** False preserves the mean. */
  readonly shiftMean?: boolean;
  /** False divides by n instead of n - 1. */
  readonly unbiased?: boolean;
  /** Least standard deviation to divide by. Default 0. */
  readonly minStd?: number;
}

/** Normalizes to mean 0 and variance 1, with 1e-8 added to the variance, as TRL's masked_whiten. */
export function whiten(
  x: NumberArray,
  { mask, shiftMean = true, unbiased = true, minStd = 0 }: WhitenOptions = {},
): Float64Array {
  if (x.length === 0) return new Float64Array(0);
  const center = mean(x, mask);
  const scale = 1 / Math.sqrt(Math.max(variance(x, mask, { unbiased }), minStd ** 2) + 1e-8);
  return Float64Array.from(x, (value) => (value - center) * scale + (shiftMean ? 0 : center));
}

/** Added to standard deviations before dividing rewards, as in TRL. */
export const STD_EPSILON = 1e-4;

/** Removes NaN. */
export function withoutNaN(x: NumberArray): number[] {
  return Array.from(x).filter((value) => !Number.isNaN(value));
}

/** Mean without NaN; NaN if nothing remains. */
export function nanMean(x: NumberArray): number {
  const values = withoutNaN(x);
  return values.length === 0 ? Number.NaN : mean(values);
}

/**
 * Standard deviation (n - 1) without NaN; NaN for fewer than two numbers, but 0 for an array of
 * one.
 */
export function nanStd(x: NumberArray): number {
  if (x.length === 1) return 0;
  const values = withoutNaN(x);
  return values.length < 2 ? Number.NaN : Math.sqrt(variance(values));
}
