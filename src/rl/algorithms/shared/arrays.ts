import { mean, type NumberArray } from "./statistics.js";

export function concatenate(parts: readonly NumberArray[]): Float64Array {
  const whole = new Float64Array(parts.reduce((length, part) => length + part.length, 0));
  let start = 0;
  for (const part of parts) {
    whole.set(part, start);
    start += part.length;
  }
  return whole;
}

/** Splits an array into consecutive parts of these lengths. */
export function splitByLength(values: Float64Array, lengths: readonly number[]): Float64Array[] {
  let start = 0;
  return lengths.map((length) => values.subarray(start, (start += length)));
}

export function sum(values: NumberArray): number {
  return Array.from(values).reduce((total, value) => total + value, 0);
}

/** Averages records with the same keys by key. */
export function meanByName<Name extends string>(
  records: readonly Readonly<Partial<Record<Name, number>>>[],
): Partial<Record<Name, number>> {
  const means: Partial<Record<Name, number>> = {};
  for (const name of Object.keys(records[0] ?? {}) as Name[])
    means[name] = mean(records.map((record) => record[name]!));
  return means;
}
