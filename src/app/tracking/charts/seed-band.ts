import { LlamaGymError } from "../../../core/errors.js";
import type { CurveSeries } from "./learning-curve.js";

/** A run's curve; x rises. */
export type SeedCurve = Pick<CurveSeries, "x" | "y">;

/**
 * The mean of several seeds' curves, with a band from the lowest to the highest. It stands at `points` places, evenly
 * over the stretch of x that all curves cover; between its points a curve is taken as straight.
 * Throws INVALID_ARGUMENT where there is no such stretch.
 */
export function computeSeedBand(name: string, curves: readonly SeedCurve[], points = 100): CurveSeries {
  const start = Math.max(...curves.map(({ x }) => x[0] ?? Infinity));
  const end = Math.min(...curves.map(({ x }) => x[x.length - 1] ?? -Infinity));
  if (curves.length === 0 || !(start < end)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `The ${curves.length} curves of "${name}" have no stretch of x in common; each needs two points or more.`,
    );
  }
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
