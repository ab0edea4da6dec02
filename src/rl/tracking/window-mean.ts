import { LlamaGymError } from "../../core/errors.js";

/**
 * The mean of the last `size` values. `values` is all that it is made of, oldest first: keep it with a checkpoint, and
 * `new WindowMean(size, values)` goes on with the same numbers.
 */
export class WindowMean {
  private readonly window: number[];

  /** Throws INVALID_ARGUMENT when `size` is not a whole number above 0. */
  constructor(
    readonly size: number,
    values: readonly number[] = [],
  ) {
    if (!Number.isInteger(size) || size < 1) {
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `A window of ${size} values cannot be; it needs a whole number above 0.`,
      );
    }
    this.window = values.slice(-size);
  }

  add(...values: readonly number[]): void {
    this.window.push(...values);
    if (this.window.length > this.size) this.window.splice(0, this.window.length - this.size);
  }

  get values(): readonly number[] {
    return this.window;
  }

  /** How many values the mean is over; at most `size`. */
  get count(): number {
    return this.window.length;
  }

  /** The mean; NaN before the first value. Summed anew each time, so that no rounding gathers over a long run. */
  get mean(): number {
    return this.window.reduce((sum, value) => sum + value, 0) / this.window.length;
  }
}

/**
 * Exponentially weighted means m[t] = d m[t-1] + (1 - d) x[t] of `values`, each divided by 1 - d^t so that the first
 * values are not drawn towards 0 (Kingma and Ba 2015, section 3). A value that is not finite is left out: the mean stays.
 * Throws INVALID_ARGUMENT when `decay` is not in [0, 1).
 */
export function exponentialMeans(values: readonly number[], decay: number): number[] {
  if (!(decay >= 0 && decay < 1)) {
    throw new LlamaGymError("INVALID_ARGUMENT", `A decay of ${decay} cannot be; it must be at least 0 and below 1.`);
  }
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    if (Number.isFinite(value)) {
      sum = decay * sum + (1 - decay) * value;
      weight = decay * weight + (1 - decay);
    }
    return sum / weight;
  });
}
