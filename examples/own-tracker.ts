/**
 * A tracker in a file: `npx llamagym train blackjack --tracker ./own-tracker.js` writes the mean
 * return to FOLDER/returns.csv.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ResumePoint, Tracker } from "llamagym";

export default function openCsvTracker(folder: string, { resumeFromStep }: ResumePoint): Tracker {
  const path = join(folder, "returns.csv");
  mkdirSync(folder, { recursive: true });
  const lines = resumeFromStep !== undefined && existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
  const kept = lines.slice(1).filter((line) => line !== "" && Number(line.split(",")[0]) <= resumeFromStep!);
  writeFileSync(path, ["step,mean_return", ...kept, ""].join("\n"));
  return {
    log(step, metrics) {
      appendFileSync(path, `${step},${metrics["rollout/ep_rew_mean"]}\n`);
    },
  };
}
