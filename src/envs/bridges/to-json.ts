import type { JsonValue } from "../../core/json.js";

/** Converts a value to JSON: typed arrays as lists, infinities and bigints as strings. */
export function toJson(value: unknown): JsonValue {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return value.map(toJson);
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<number | bigint>, toJson);
  if (value instanceof Map || value instanceof Set) return Array.from(value as Iterable<unknown>, toJson);
  if (typeof value !== "object") return null;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, toJson(part)]));
}
