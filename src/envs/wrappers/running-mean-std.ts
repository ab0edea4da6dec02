import type { JsonValue } from "../../core/json.js";
import type { ValueKind } from "../../core/settings.js";

const INITIAL_COUNT = 1e-4;

/** Elementwise running mean and variance (Chan, Golub and LeVeque 1979), initially 0 and 1. */
export class RunningMeanStd {
  readonly mean: Float64Array;
  readonly variance: Float64Array;
  private count = INITIAL_COUNT;

  /**
   * @param round Math.fround where the numbers are float32, so that every operation rounds as it
   * does there.
   */
  constructor(
    size: number,
    private readonly round: (value: number) => number = (value) => value,
  ) {
    this.mean = new Float64Array(size);
    this.variance = new Float64Array(size).fill(1);
  }

  /**
   * Adds values, except those with which the mean or variance of their element would not be finite.
   */
  update(values: ArrayLike<number>): void {
    const { round } = this;
    const total = this.count + 1;
    const [count, newCount] = [round(this.count), round(total)];
    for (let i = 0; i < values.length; i++) {
      const delta = round(values[i] - this.mean[i]);
      const mean = round(this.mean[i] + round(delta / newCount));
      const spread = round(round(round(delta * delta) * count) / newCount);
      const variance = round(round(round(this.variance[i] * count) + spread) / newCount);
      if (!Number.isFinite(mean) || !Number.isFinite(variance)) continue;
      this.mean[i] = mean;
      this.variance[i] = variance;
    }
    this.count = total;
  }

  save(): JsonValue {
    return { mean: Array.from(this.mean), variance: Array.from(this.variance), count: this.count };
  }

  load(json: JsonValue): void {
    const { mean, variance, count } = json as { mean: number[]; variance: number[]; count: number };
    this.mean.set(mean);
    this.variance.set(variance);
    this.count = count;
  }
}

/** The kind of the constant that is added to a variance before the division by its root. */
export const EPSILON: ValueKind = {
  expected: "a number > 0",
  isOf: (value) => Number.isFinite(value) && (value as number) > 0,
};
