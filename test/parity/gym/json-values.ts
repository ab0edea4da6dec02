/** What a fixture file holds. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A number as fixtures write it: non-finite ones and integers beyond 2^53 are strings. */
export function decodeNumber(value: Json): number | bigint {
  if (typeof value === "number") return value;
  if (typeof value !== "string") throw new Error(`Expected a number, got ${JSON.stringify(value)}.`);
  return /n/i.test(value) ? Number(value) : BigInt(value);
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((total, extent) => total * extent, 1);
}

/** Row-major values as nested arrays of the given shape. */
export function nestArrays(values: ArrayLike<Json>, shape: readonly number[]): Json {
  if (shape.length === 0) return values[0];
  if (shape.length === 1) return Array.from(values);
  const stride = elementCount(shape.slice(1));
  return Array.from({ length: shape[0] }, (_, i) =>
    nestArrays(Array.from(values).slice(i * stride, (i + 1) * stride), shape.slice(1)),
  );
}

const toCamelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const toSnakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Keyword arguments of Python as options here. */
export function toOptions(kwargs: { [key: string]: Json } | null | undefined): { [key: string]: Json } {
  return Object.fromEntries(Object.entries(kwargs ?? {}).map(([name, value]) => [toCamelCase(name), value]));
}

/** Any value as a fixture would write it; names in snake case unless told otherwise. */
export function encodeValue(value: unknown, rename: (name: string) => string = toSnakeCase): Json {
  if (ArrayBuffer.isView(value)) return Array.from(value as Float64Array, (part) => encodeValue(part, rename));
  if (Array.isArray(value)) return value.map((part) => encodeValue(part, rename));
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [rename(name), encodeValue(part, rename)]));
  }
  return (value ?? null) as Json;
}

/**
 * How far two values are apart, relative to max(1, |expected|), and where; anything but numbers
 * must be equal.
 */
export function largestDifference(actual: Json, expected: Json, path = ""): { error: number; path: string } {
  if (typeof actual === "number" && typeof expected === "number") {
    const error = Math.abs(actual - expected) / Math.max(1, Math.abs(expected));
    return { error: Number.isNaN(error) ? Infinity : error, path };
  }
  if (typeof actual !== "object" || typeof expected !== "object" || actual === null || expected === null) {
    return { error: actual === expected ? 0 : Infinity, path };
  }
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  let worst = { error: Array.isArray(actual) === Array.isArray(expected) ? 0 : Infinity, path };
  for (const name of names) {
    const [ours, theirs] = [(actual as { [key: string]: Json })[name], (expected as { [key: string]: Json })[name]];
    const partPath = `${path}/${name}`;
    const part =
      ours === undefined || theirs === undefined
        ? { error: Infinity, path: partPath }
        : largestDifference(ours, theirs, partPath);
    if (part.error > worst.error) worst = part;
  }
  return worst;
}
