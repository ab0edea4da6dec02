import { METRICS_FILE } from "./read-metrics.js";
import { fs } from "#platform";
import { AppendFile } from "../append-file.js";
import type { ResumePoint, Tracker } from "../tracker.js";
import { truncateAfterStep } from "./truncate-after-step.js";

/**
 * Writes a run as lines of JSON: one flat record per line of `metrics.jsonl`, one completion per line of `completions.jsonl`, each
 * with its "step". Numbers that are not finite are null. With `resumeFromStep`, lines of later steps and incomplete ones are
 * removed first; without it, the files must not exist.
 * @throws FILE_WRITE_FAILED, FILE_READ_FAILED, INVALID_STATE
 */
export async function openJsonlTracker(
  folder: string,
  { resumeFromStep }: ResumePoint = {},
): Promise<Required<Omit<Tracker, "logRollout">>> {
  const open = async (name: string): Promise<AppendFile> => {
    const path = fs.join(folder, name);
    if (resumeFromStep === undefined) return AppendFile.create(path);
    await truncateAfterStep(path, resumeFromStep);
    return AppendFile.open(path);
  };
  const metrics = await open(METRICS_FILE);
  const completions = await open("completions.jsonl").catch((error: unknown) => {
    metrics.close();
    throw error;
  });
  return {
    log: (step, record) => metrics.append(formatLine(step, record)),
    logCompletions: (step, rows) => completions.append(rows.map((row) => formatLine(step, row)).join("")),
    // The run writes its settings to config.json.
    logConfig: () => {},
    close: () => {
      metrics.close();
      completions.close();
    },
  };
}

function formatLine(step: number, values: Readonly<Record<string, unknown>>): string {
  // "step" precedes the values, and replaces one of that name.
  return `${JSON.stringify(Object.assign({ step }, values, { step }))}\n`;
}
