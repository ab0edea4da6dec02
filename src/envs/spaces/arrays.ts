import { countElements } from "../../core/numbers.js";
import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";

export type NestedNumbers = ArrayLike<number> | readonly NestedNumbers[];

/** Returns the flat values and the shape of nested arrays. */
export function flattenNested(nested: NestedNumbers, name: string): { values: number[]; shape: number[] } {
  const rectangleError = () => invalidArgument(`${name} must be a rectangular array of numbers.`);
  if (typeof nested !== "object" || nested === null) throw rectangleError();
  if (typeof nested[0] !== "object") {
    const values = Array.from(nested as ArrayLike<number>);
    if (values.some((value) => typeof value !== "number")) throw rectangleError();
    return { values, shape: [values.length] };
  }
  const rows = Array.from(nested as readonly NestedNumbers[], (row) => flattenNested(row, name));
  if (rows.some((row) => row.shape.join() !== rows[0].shape.join())) throw rectangleError();
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

/** Decodes a number; undefined for anything but a number and the strings of infinities and NaN. */
function decodeNumber(json: JsonValue): number | undefined {
  if (json === "Infinity" || json === "-Infinity" || json === "NaN") return Number(json);
  return typeof json === "number" ? json : undefined;
}

/** Flattens nested JSON arrays to numbers; undefined when an element is not a number. */
export function numbersFromJson(json: JsonValue): number[] | undefined {
  const numbers: number[] = [];
  const collect = (part: JsonValue): boolean => {
    if (Array.isArray(part)) return part.every(collect);
    const number = decodeNumber(part);
    if (number !== undefined) numbers.push(number);
    return number !== undefined;
  };
  return collect(json) ? numbers : undefined;
}

/** Decodes a number or nested arrays of numbers; undefined when an element is not a number. */
export function nestedFromJson(json: JsonValue): number | NestedNumbers | undefined {
  if (!Array.isArray(json)) return decodeNumber(json);
  const parts = (json as readonly JsonValue[]).map(nestedFromJson);
  return parts.includes(undefined) ? undefined : (parts as NestedNumbers);
}

export function isNumberArray(value: unknown): value is ArrayLike<number> {
  if (ArrayBuffer.isView(value)) return !(value instanceof DataView) && !(value instanceof BigInt64Array);
  return Array.isArray(value) && value.every((element) => typeof element === "number");
}

/** Returns the position of the 1 among `count` one-hot values from `start`, or -1. */
export function findHotIndex(flat: ArrayLike<number>, start: number, count: number): number {
  for (let i = 0; i < count; i++) if (flat[start + i] !== 0) return i;
  return -1;
}
