import { readFile } from "node:fs/promises";
import { writeFileAtomic } from "../../../models/files/index.js";
import { toReadError, getSystemErrorCode } from "../../../models/files/file-errors.js";
import { isJsonObject } from "../../../models/files/json-file.js";

const NEWLINE = 0x0a;

/**
 * Takes from a JSONL file the lines whose "step" is above `lastStep`, and those that are broken: a process that ended
 * while it wrote leaves half a line. The file is replaced as a whole, or not at all when nothing must go.
 * A file that is not there is left so. Throws FILE_READ_FAILED and FILE_WRITE_FAILED.
 */
export async function truncateAfterStep(path: string, lastStep: number): Promise<void> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    if (getSystemErrorCode(error) === "ENOENT") return;
    throw toReadError(path, error);
  }
  const kept = splitLines(bytes).filter((line) => isNotAfterStep(line, lastStep));
  const size = kept.reduce((sum, line) => sum + line.length, 0);
  if (size < bytes.length) await writeFileAtomic(path, Buffer.concat(kept));
}

/** The lines that end in a newline, each with it. */
function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    lines.push(bytes.subarray(start, end + 1));
    start = end + 1;
  }
  return lines;
}

function isNotAfterStep(line: Buffer, lastStep: number): boolean {
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    return isJsonObject(value) && typeof value.step === "number" && value.step <= lastStep;
  } catch {
    return false;
  }
}
