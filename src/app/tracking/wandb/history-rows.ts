import type { MetricRecord } from "../../../rl/tracking/index.js";

/** A line of a run's history: keys, including "_step", with their JSON texts. */
export interface HistoryRow {
  readonly step: number;
  readonly cells: readonly (readonly [key: string, json: string])[];
  /** Files that the row refers to, relative to the run's files/. */
  readonly files: readonly string[];
}

/** When a row was logged: seconds since 1970, and seconds since the run started. */
export interface RowTime {
  readonly timestamp: number;
  readonly runtime: number;
}

/** Creates the row of a record, with the columns that W&B's client adds. */
export function createMetricRow(step: number, record: MetricRecord, time: RowTime): HistoryRow {
  // As W&B: NaN and Infinity, which standard JSON lacks, are written as such.
  const cells = Object.entries(record).map(([key, value]) => [key, String(value)] as const);
  return { step, cells: [...cells, ...createStandardCells(step, time)], files: [] };
}

/** Creates the row of a file, such as a table. */
export function createFileRow(step: number, key: string, value: object, file: string, time: RowTime): HistoryRow {
  return { step, cells: [[key, JSON.stringify(value)], ...createStandardCells(step, time)], files: [file] };
}

function createStandardCells(step: number, { timestamp, runtime }: RowTime): [string, string][] {
  return [
    ["_step", String(step)],
    ["_timestamp", String(timestamp)],
    ["_runtime", String(runtime)],
  ];
}

/**
 * Merges two rows of a step; later values win. W&B would renumber a second row of the same step.
 */
export function mergeRows(earlier: HistoryRow, later: HistoryRow): HistoryRow {
  const cells = new Map([...earlier.cells, ...later.cells]);
  return { step: later.step, cells: [...cells], files: [...new Set([...earlier.files, ...later.files])] };
}

export function serializeObject(cells: Iterable<readonly [key: string, json: string]>): string {
  return `{${Array.from(cells, ([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
}
