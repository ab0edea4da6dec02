import { fs } from "#platform";
import { writeFileAtomic } from "../../../models/files/index.js";
import { getSystemErrorCode, toReadError } from "../../../models/files/file-errors.js";
import { AppendFile } from "../append-file.js";
import type { ResumePoint, Tracker } from "../tracker.js";
import { parseRecord } from "./read-metrics.js";

/**
 * Writes a run as lines of JSON: one flat record per line of `metrics.jsonl`, one completion per line of `completions.jsonl`, each
 * with its "step". Numbers that are not finite are null. With `resumeFromStep`, lines of later steps and incomplete ones are
 * removed first; without it, the files must not exist.
 * @throws FILE_WRITE_FAILED, FILE_READ_FAILED, INVALID_STATE
 */
export async function openJsonlTracker(
  folder: string,
  { resumeFromStep }: ResumePoint = {},
): Promise<Required<Tracker>> {
  const open = async (name: string): Promise<AppendFile> => {
    const path = fs.join(folder, name);
    if (resumeFromStep === undefined) return AppendFile.create(path);
    await truncateAfterStep(path, resumeFromStep);
    return AppendFile.open(path);
  };
  const metrics = await open("metrics.jsonl");
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

/** Removes the lines after a step and incomplete lines, which a killed process may leave; replaces the file atomically. */
async function truncateAfterStep(path: string, lastStep: number): Promise<void> {
  let text: string;
  try {
    text = await fs.readText(path);
  } catch (error) {
    if (getSystemErrorCode(error) === "ENOENT") return;
    throw toReadError(path, error);
  }
  const kept = text
    .split(/(?<=\n)/)
    .filter((line) => line.endsWith("\n") && (parseRecord(line)?.step ?? NaN) <= lastStep);
  if (kept.join("") !== text) await writeFileAtomic(path, kept.join(""));
}
