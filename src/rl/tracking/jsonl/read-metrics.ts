import { fs } from "#platform";
import { toReadError } from "../../../core/files/file-errors.js";
import { isJsonObject } from "../../../core/json.js";
import type { MetricRecord } from "../tracker.js";

/** Metrics of a run folder, one record per update. */
export const METRICS_FILE = "metrics.jsonl";

/**
 * Reads the records of a metrics.jsonl, including "step"; null becomes NaN. Skips incomplete lines,
 * such as the last one of a running run. @throws FILE_NOT_FOUND, FILE_READ_FAILED
 */
export async function readMetrics(path: string): Promise<MetricRecord[]> {
  const records: MetricRecord[] = [];
  try {
    for await (const line of fs.readLines(path)) records.push(parseRecord(line) ?? {});
  } catch (error) {
    throw toReadError(path, error);
  }
  return records.filter((record) => "step" in record);
}

/** Parses the numbers of a line; undefined for a line that is no JSON object. */
export function parseRecord(line: string): MetricRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const numbers = Object.entries(value).flatMap(([name, number]): [string, number][] => {
    if (number === null) return [[name, NaN]];
    return typeof number === "number" ? [[name, number]] : [];
  });
  return Object.fromEntries(numbers);
}
