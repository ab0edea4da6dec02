import { join } from "node:path";
import type { SeedCurve } from "./seed-band.js";
import { readMetrics } from "../../../rl/tracking/jsonl/read-metrics.js";

/** The mean return while a run trains, as metrics.jsonl names it. */
export const MEAN_RETURN = "rollout/ep_rew_mean";

/** A metric of a run over its turns, episodes or updates, of the updates that have one. Throws what readMetrics throws. */
export async function readMetricCurve(
  runFolder: string,
  metric: string = MEAN_RETURN,
  xAxis: "turns" | "episodes" | "step" = "turns",
): Promise<SeedCurve> {
  const records = await readMetrics(join(runFolder, "metrics.jsonl"));
  const points = records.filter((record) => Number.isFinite(record[metric]));
  return { x: points.map((record) => record[xAxis]), y: points.map((record) => record[metric]) };
}
