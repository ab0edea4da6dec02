import type { MetricRecord } from "../../../rl/tracking/tracker.js";

/** A line of a run's history: keys and their JSON texts, "_step" among them. */
export interface HistoryRow {
  readonly step: number;
  readonly cells: readonly (readonly [key: string, json: string])[];
  /** Files that the row speaks of, as paths below the run's files/. */
  readonly files: readonly string[];
}

/** When a row was logged: seconds since 1970, and seconds since the run began. */
export interface RowTime {
  readonly timestamp: number;
  readonly runtime: number;
}

/** The row of a record, with the columns that W&B's own client adds. */
export function createMetricRow(step: number, record: MetricRecord, time: RowTime): HistoryRow {
  const cells = Object.entries(record).map(([key, value]) => [key, serializeNumber(value)] as const);
  return { step, cells: [...cells, ...createStandardCells(step, time)], files: [] };
}

/** The row that shows a file, such as a table. */
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

/** Two rows of one step as one: W&B has a row a step, and gives another number to a second one. Later values count. */
export function mergeRows(earlier: HistoryRow, later: HistoryRow): HistoryRow {
  const cells = new Map([...earlier.cells, ...later.cells]);
  return { step: later.step, cells: [...cells], files: [...new Set([...earlier.files, ...later.files])] };
}

/** As W&B writes numbers: with NaN and Infinity, which JSON proper does not have. */
function serializeNumber(value: number): string {
  return String(value);
}

/** Cells as the text of one object. */
export function serializeObject(cells: Iterable<readonly [key: string, json: string]>): string {
  return `{${Array.from(cells, ([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
}
