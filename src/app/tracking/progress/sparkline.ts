import { invalidArgument } from "../../../core/errors.js";

const BLOCKS = "▁▂▃▄▅▆▇█";

/**
 * Draws values as a curve of at most `width` characters. Each character is the mean of its share of
 * the values, scaled from the lowest mean to the highest. Shares without a finite value are spaces;
 * a constant is drawn low.
 * @throws INVALID_ARGUMENT when `width` is no positive integer.
 */
export function renderSparkline(values: readonly number[], width: number): string {
  if (!Number.isInteger(width) || width < 1)
    throw invalidArgument(`\`width\` of a sparkline must be an integer >= 1, got ${width}.`);
  const means = computeBucketMeans(values, Math.min(width, values.length));
  const finite = means.filter(Number.isFinite);
  const low = Math.min(...finite);
  const range = Math.max(...finite) - low;
  return means
    .map((mean) => {
      if (!Number.isFinite(mean)) return " ";
      return BLOCKS[range === 0 ? 0 : Math.round(((mean - low) / range) * (BLOCKS.length - 1))];
    })
    .join("");
}

/** Splits values into `count` buckets of nearly equal size and averages the finite ones of each. */
function computeBucketMeans(values: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, bucket) => {
    const start = Math.floor((bucket * values.length) / count);
    const end = Math.floor(((bucket + 1) * values.length) / count);
    const finite = values.slice(start, end).filter(Number.isFinite);
    return finite.reduce((sum, value) => sum + value, 0) / finite.length;
  });
}
