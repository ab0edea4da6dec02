import { fs } from "#platform";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { getSystemErrorCode, toReadError } from "../../../core/files/file-errors.js";
import { parseRecord } from "./read-metrics.js";

/**
 * Removes the lines after a step and incomplete lines, which a killed process may leave; replaces
 * the file atomically.
 */
export async function truncateAfterStep(path: string, lastStep: number): Promise<void> {
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
