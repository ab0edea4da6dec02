import { LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { countElements } from "../../core/count-elements.js";

/** Numbers in any depth of arrays, with the shape that they have. */
export type NestedNumbers = ArrayLike<number> | readonly NestedNumbers[];

/** Flat values and the shape of nested arrays. */
export function flattenNested(nested: NestedNumbers, name: string): { values: number[]; shape: number[] } {
  const first = nested[0];
  if (typeof first !== "object") {
    return { values: Array.from(nested as ArrayLike<number>), shape: [nested.length] };
  }
  const rows = Array.from(nested as readonly NestedNumbers[], (row) => flattenNested(row, name));
  if (rows.some((row) => row.shape.join() !== rows[0].shape.join())) {
    throw new LlamaGymError("INVALID_ARGUMENT", `${name} must be a rectangular array; its rows differ in length.`);
  }
  return { values: rows.flatMap((row) => row.values), shape: [rows.length, ...rows[0].shape] };
}

/** Row-major values as nested arrays. */
export function nestArray(values: ArrayLike<number>, shape: readonly number[]): JsonValue {
  if (shape.length <= 1) return Array.from(values, encodeNumber);
  const rest = shape.slice(1);
  const stride = countElements(rest);
  const all = Array.from(values);
  return Array.from({ length: shape[0] }, (_, i) => nestArray(all.slice(i * stride, (i + 1) * stride), rest));
}

/** JSON has no infinities: they are written as strings. */
function encodeNumber(value: number): JsonValue {
  return Number.isFinite(value) ? value : String(value);
}

/** Nested JSON arrays as flat numbers; undefined when something in them is no number. */
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

/** The index of the one among `count` flat values from `start`; -1 when there is none. */
export function findHotIndex(flat: ArrayLike<number>, start: number, count: number): number {
  for (let i = 0; i < count; i++) if (flat[start + i] !== 0) return i;
  return -1;
}
