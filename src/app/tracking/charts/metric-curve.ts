import { join } from "node:path";
import { isDrawable } from "./axis.js";
import type { SeedCurve } from "./seed-band.js";
import { METRICS_FILE, readMetrics } from "../../../rl/tracking/index.js";

/** The metric of the mean return during training. */
export const MEAN_RETURN = "rollout/ep_rew_mean";

/**
 * Reads a run's metric over its turns, episodes or updates, skipping updates without it. @throws
 * what readMetrics throws.
 */
export async function readMetricCurve(
  runFolder: string,
  metric: string = MEAN_RETURN,
  xAxis: "num_turns" | "num_episodes" | "step" = "num_turns",
): Promise<SeedCurve> {
  const records = await readMetrics(join(runFolder, METRICS_FILE));
  const points = records.filter((record) => isDrawable(record[metric]));
  return { x: points.map((record) => record[xAxis]), y: points.map((record) => record[metric]) };
}
