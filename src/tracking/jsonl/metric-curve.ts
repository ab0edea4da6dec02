import { join } from "node:path";
import type { SeedCurve } from "../charts/seed-band.js";
import { readMetrics } from "./read.js";

/** The mean return while a run trains, as metrics.jsonl names it. */
export const MEAN_RETURN = "rollout/ep_rew_mean";

/** A metric of a run over its turns, episodes or updates, of the updates that have one. Throws what readMetrics throws. */
export async function metricCurve(
  run: string,
  metric: string = MEAN_RETURN,
  over: "turns" | "episodes" | "step" = "turns",
): Promise<SeedCurve> {
  const records = await readMetrics(join(run, "metrics.jsonl"));
  const points = records.filter((record) => Number.isFinite(record[metric]));
  return { x: points.map((record) => record[over]), y: points.map((record) => record[metric]) };
}
