import { METRICS_FILE } from "./read-metrics.js";
import { fs } from "#platform";
import { AppendFile } from "../append-file.js";
import type { ResumePoint, Tracker } from "../tracker.js";
import { truncateAfterStep } from "./truncate-after-step.js";

/**
 * Writes the metrics of a run as lines of JSON: one flat record per line of `metrics.jsonl`, with
 * its "step". Numbers that are not finite are null. With `resumeFromStep`, lines of later steps and
 * incomplete ones are removed first; without it, the file must not exist.
 * @throws FILE_WRITE_FAILED, FILE_READ_FAILED, INVALID_STATE
 */
export async function openJsonlTracker(
  folder: string,
  { resumeFromStep }: ResumePoint = {},
): Promise<Required<Pick<Tracker, "log" | "close">>> {
  const path = fs.join(folder, METRICS_FILE);
  if (resumeFromStep !== undefined) await truncateAfterStep(path, resumeFromStep);
  const metrics = resumeFromStep === undefined ? AppendFile.create(path) : AppendFile.open(path);
  return { log: (step, record) => metrics.append(formatLine(step, record)), close: () => metrics.close() };
}

function formatLine(step: number, values: Readonly<Record<string, unknown>>): string {
  // "step" precedes the values, and replaces one of that name.
  return `${JSON.stringify(Object.assign({ step }, values, { step }))}\n`;
}
