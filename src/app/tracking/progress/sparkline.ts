import { LlamaGymError } from "../../../core/errors.js";

const BLOCKS = "▁▂▃▄▅▆▇█";

/**
 * A curve in `width` characters: each stands for the mean of its share of the values, from the lowest block (the least
 * of these means) to the full one (the greatest). Fewer values than `width` give fewer characters; where no value
 * is finite there is a space. A constant is drawn as low.
 */
export function renderSparkline(values: readonly number[], width: number): string {
  if (!Number.isInteger(width) || width < 1) {
    throw new LlamaGymError("INVALID_ARGUMENT", `A sparkline of ${width} characters cannot be; it needs at least 1.`);
  }
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

/** The means of `count` runs of neighbours of nearly equal length; of each, what is finite. */
function computeBucketMeans(values: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, bucket) => {
    const start = Math.floor((bucket * values.length) / count);
    const end = Math.floor(((bucket + 1) * values.length) / count);
    const finite = values.slice(start, end).filter(Number.isFinite);
    return finite.reduce((sum, value) => sum + value, 0) / finite.length;
  });
}
