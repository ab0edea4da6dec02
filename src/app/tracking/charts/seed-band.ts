import { LlamaGymError } from "../../../core/errors.js";
import type { CurveSeries } from "./learning-curve.js";

/** The curve of a run; x increases. */
export type SeedCurve = Pick<CurveSeries, "x" | "y">;

/**
 * Computes the mean of several seeds' curves, with a band from the lowest to the highest, at
 * `points` evenly spaced x in the range that all curves cover. Curves are interpolated linearly.
 * @throws INVALID_ARGUMENT if the ranges do not overlap.
 */
export function computeSeedBand(name: string, curves: readonly SeedCurve[], points = 100): CurveSeries {
  const start = Math.max(...curves.map(({ x }) => x[0] ?? Infinity));
  const end = Math.min(...curves.map(({ x }) => x[x.length - 1] ?? -Infinity));
  if (curves.length === 0 || !(start < end))
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `The x ranges of the ${curves.length} curves of "${name}" do not overlap; each curve needs at least two points.`,
    );
  const x = Array.from({ length: points }, (_, index) => start + ((end - start) * index) / (points - 1));
  const valuesPerPoint = x.map((position) => curves.map((curve) => interpolateAt(curve, position)));
  return {
    name,
    x,
    y: valuesPerPoint.map((seeds) => seeds.reduce((sum, value) => sum + value, 0) / seeds.length),
    low: valuesPerPoint.map((seeds) => Math.min(...seeds)),
    high: valuesPerPoint.map((seeds) => Math.max(...seeds)),
  };
}

function interpolateAt({ x, y }: SeedCurve, position: number): number {
  const right = x.findIndex((value) => value >= position);
  if (right <= 0) return right === 0 ? y[0] : y[y.length - 1];
  const fraction = (position - x[right - 1]) / (x[right] - x[right - 1]);
  return y[right - 1] + fraction * (y[right] - y[right - 1]);
}
