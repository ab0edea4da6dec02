import { join } from "node:path";
import type { SeedCurve } from "../charts/seed-band.js";
import { readMetrics } from "./read.js";

const RETURN = "rollout/ep_rew_mean";

/** The mean return while a run trained, over its turns or episodes, of the updates that have one. Throws what readMetrics throws. */
export async function returnCurve(run: string, over: "turns" | "episodes" = "turns"): Promise<SeedCurve> {
  const records = await readMetrics(join(run, "metrics.jsonl"));
  const points = records.filter((record) => Number.isFinite(record[RETURN]));
  return { x: points.map((record) => record[over]), y: points.map((record) => record[RETURN]) };
}
