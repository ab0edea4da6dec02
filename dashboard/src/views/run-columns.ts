import type { RunRow } from "../../../src/app/dashboard/api.js";

/** A column of the table of runs. */
export interface Column {
  readonly key: string;
  readonly title: string;
  readonly isNumber: boolean;
  /** Value that the table is sorted by. */
  readonly value: (row: RunRow) => string | number | null;
}

export const COLUMNS: readonly Column[] = [
  { key: "name", title: "Run", isNumber: false, value: ({ id }) => id },
  { key: "env", title: "Environment", isNumber: false, value: ({ env }) => env },
  { key: "model", title: "Model", isNumber: false, value: ({ model }) => model },
  { key: "algorithm", title: "Algorithm", isNumber: false, value: ({ algorithm }) => algorithm },
  { key: "state", title: "State", isNumber: false, value: ({ state }) => state },
  { key: "result", title: "Return", isNumber: true, value: ({ result }) => result },
  { key: "turns", title: "Turns", isNumber: true, value: ({ turns }) => turns },
  { key: "time", title: "Time", isNumber: true, value: ({ seconds }) => seconds },
  { key: "seed", title: "Seed", isNumber: true, value: ({ seed }) => seed },
  { key: "commit", title: "Commit", isNumber: false, value: ({ commit }) => commit },
  { key: "started", title: "Started", isNumber: true, value: ({ startedMs, changedMs }) => startedMs ?? changedMs },
];

/** Orders rows by a column; rows without a value come last in both directions. */
export function compareRows(a: RunRow, b: RunRow, column: Column, descending: boolean): number {
  const [x, y] = [column.value(a), column.value(b)];
  if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
  const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
  return descending ? -order : order;
}
