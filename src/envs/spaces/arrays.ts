import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { countElements } from "../../core/count-elements.js";

/** Numbers nested in arrays to any depth. */
export type NestedNumbers = ArrayLike<number> | readonly NestedNumbers[];

/** Returns the flat values and the shape of nested arrays. */
export function flattenNested(nested: NestedNumbers, name: string): { values: number[]; shape: number[] } {
  const first = nested[0];
  if (typeof first !== "object") {
    return { values: Array.from(nested as ArrayLike<number>), shape: [nested.length] };
  }
  const rows = Array.from(nested as readonly NestedNumbers[], (row) => flattenNested(row, name));
  if (rows.some((row) => row.shape.join() !== rows[0].shape.join())) {
    throw invalidArgument(`${name} must be a rectangular array; its rows differ in length.`);
  }
  return { values: rows.flatMap((row) => row.values), shape: [rows.length, ...rows[0].shape] };
}

/** Nests row-major values by shape. */
export function nestArray(values: ArrayLike<number>, shape: readonly number[]): JsonValue {
  if (shape.length <= 1) return Array.from(values, encodeNumber);
  const rest = shape.slice(1);
  const stride = countElements(rest);
  const all = Array.from(values);
  return Array.from({ length: shape[0] }, (_, i) => nestArray(all.slice(i * stride, (i + 1) * stride), rest));
}

/** Encodes infinities, which JSON lacks, as strings. */
function encodeNumber(value: number): JsonValue {
  return Number.isFinite(value) ? value : String(value);
}

/** Flattens nested JSON arrays to numbers; undefined when an element is not a number. */
export function numbersFromJson(json: JsonValue): number[] | undefined {
  if (typeof json === "number") return [json];
  if (json === "Infinity" || json === "-Infinity" || json === "NaN") return [Number(json)];
  if (!Array.isArray(json)) return undefined;
  const parts = (json as readonly JsonValue[]).map(numbersFromJson);
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}

/** Whether a value is an array or typed array of numbers. */
export function isNumberArray(value: unknown): value is ArrayLike<number> {
  if (ArrayBuffer.isView(value)) return !(value instanceof DataView) && !(value instanceof BigInt64Array);
  return Array.isArray(value) && value.every((element) => typeof element === "number");
}

/** Returns the position of the 1 among `count` one-hot values from `start`, or -1. */
export function findHotIndex(flat: ArrayLike<number>, start: number, count: number): number {
  for (let i = 0; i < count; i++) if (flat[start + i] !== 0) return i;
  return -1;
}
