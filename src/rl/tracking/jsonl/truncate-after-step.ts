import { readFile } from "node:fs/promises";
import { writeFileAtomic } from "../../../models/files/index.js";
import { toReadError, getSystemErrorCode } from "../../../models/files/file-errors.js";
import { isJsonObject } from "../../../models/files/json-file.js";

const NEWLINE = 0x0a;

/**
 * Removes the lines of a JSONL file whose "step" is above `lastStep`, and incomplete lines, which a killed process may leave.
 * Replaces the file atomically, and only if a line is removed. Does nothing if the file does not exist.
 * @throws FILE_READ_FAILED, FILE_WRITE_FAILED
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

/** Splits a text into its complete lines, including their newlines. */
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
