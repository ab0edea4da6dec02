import { invalidArgument } from "../../../core/errors.js";

/** Numbers in a row; 1 in a mask where a number counts. */
export type NumberArray = ArrayLike<number>;

/** Sum of f over the numbers that count (all, without a mask). */
function maskedSum(x: NumberArray, mask: NumberArray | undefined, f: (value: number) => number): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) if (mask === undefined || mask[i] !== 0) sum += f(x[i]);
  return sum;
}

function maskedCount(x: NumberArray, mask: NumberArray | undefined): number {
  return mask === undefined ? x.length : maskedSum(mask, mask, () => 1);
}

/** Mean of the numbers that count. Throws INVALID_ARGUMENT when none does. */
export function mean(x: NumberArray, mask?: NumberArray): number {
  const n = maskedCount(x, mask);
  if (n === 0) throw invalidArgument("There is no mean of no numbers: every value is masked out.");
  return maskedSum(x, mask, (value) => value) / n;
}

/** Variance of the numbers that count; `unbiased` divides by n - 1. That of a single number is 0. */
export function variance(x: NumberArray, mask?: NumberArray, { unbiased = true }: { unbiased?: boolean } = {}): number {
  const center = mean(x, mask);
  const n = maskedCount(x, mask);
  return maskedSum(x, mask, (value) => (value - center) ** 2) / (unbiased ? Math.max(n - 1, 1) : n);
}

export interface WhitenOptions {
  /** 1 for the numbers whose mean and variance are taken; all numbers are then shifted and scaled. */
  readonly mask?: NumberArray;
  /** False keeps the mean where it was. */
  readonly shiftMean?: boolean;
  /** False divides by the number of values, and not by one less. */
  readonly unbiased?: boolean;
}

/** Numbers brought to mean 0 and variance 1, with 1e-8 added to the variance, as TRL's masked_whiten. */
export function whiten(x: NumberArray, { mask, shiftMean = true, unbiased = true }: WhitenOptions = {}): Float64Array {
  if (x.length === 0) return new Float64Array(0);
  const center = mean(x, mask);
  const scale = 1 / Math.sqrt(variance(x, mask, { unbiased }) + 1e-8);
  return Float64Array.from(x, (value) => (value - center) * scale + (shiftMean ? 0 : center));
}

/** Added to standard deviations that rewards are divided by, as in TRL. */
export const STD_EPSILON = 1e-4;

/** The numbers that are not NaN: rewards of samples that could be scored. */
export function withoutNaN(x: NumberArray): number[] {
  return Array.from(x).filter((value) => !Number.isNaN(value));
}

/** Mean of the numbers that are not NaN; NaN when there are none. */
export function nanMean(x: NumberArray): number {
  const values = withoutNaN(x);
  return values.length === 0 ? Number.NaN : mean(values);
}

/** Standard deviation (n - 1) of the numbers that are not NaN; NaN for fewer than two, unless there is but one number at all: 0. */
export function nanStd(x: NumberArray): number {
  if (x.length === 1) return 0;
  const values = withoutNaN(x);
  return values.length < 2 ? Number.NaN : Math.sqrt(variance(values));
}
