import { createHash } from "node:crypto";
import { join } from "node:path";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import type { CompletionRow } from "../../../rl/tracking/index.js";

/** A file with a table of completions, and its entry in the history row. */
export interface TableFile {
  /** Path relative to the run's files/. */
  readonly path: string;
  readonly value: object;
}

/** Writes completions in the format of W&B's `Table`. @throws FILE_WRITE_FAILED */
export async function writeTable(
  filesFolder: string,
  key: string,
  step: number,
  rows: readonly CompletionRow[],
): Promise<TableFile> {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const data = rows.map((row) => columns.map((column) => row[column] ?? null));
  const content = JSON.stringify({ columns, data });
  const sha256 = createHash("sha256").update(content).digest("hex");
  const path = `media/table/${key}_${step}_${sha256.slice(0, 20)}.table.json`;
  await writeFileAtomic(join(filesFolder, ...path.split("/")), content);
  const size = Buffer.byteLength(content);
  return { path, value: { _type: "table-file", path, sha256, size, ncols: columns.length, nrows: rows.length } };
}
