import {
  Box,
  Dict,
  Discrete,
  MultiBinary,
  MultiDiscrete,
  SchemaSpace,
  Sequence,
  Text,
  Tuple,
  type Space,
} from "../spaces/index.js";
import { JsonSpace } from "./json-space.js";
import type { JsonObject, JsonValue } from "../../core/json.js";
import { countElements } from "../../core/numbers.js";

/** Returns a JSON Schema of the values that a space's `encode` returns. */
export function spaceToSchema(space: Space): JsonObject {
  if (space instanceof Discrete) return { type: "integer", minimum: space.start, maximum: space.start + space.n - 1 };
  if (space instanceof Text) return { type: "string", minLength: space.minLength, maxLength: space.maxLength };
  if (space instanceof Box) {
    const { shape } = space as Box<"float64">;
    const element: JsonObject = space.dtype.startsWith("float") ? { type: ["number", "string"] } : { type: "integer" };
    return createArraySchema(element, shape.length === 0 ? [countElements(shape)] : shape);
  }
  if (space instanceof MultiDiscrete || space instanceof MultiBinary)
    return createArraySchema({ type: "integer" }, space.shape);
  if (space instanceof Tuple) {
    const parts = space.spaces.map(spaceToSchema);
    return { type: "array", prefixItems: parts, minItems: parts.length, maxItems: parts.length };
  }
  if (space instanceof Dict) {
    const parts = Object.entries(space.spaces);
    return {
      type: "object",
      properties: Object.fromEntries(parts.map(([name, part]) => [name, spaceToSchema(part)])),
      required: parts.map(([name]) => name),
    };
  }
  if (space instanceof SchemaSpace) return space.jsonSchema as JsonObject;
  if (space instanceof JsonSpace) return space.schema;
  if (space instanceof Sequence) return { type: "array", items: spaceToSchema(space.featureSpace as Space) };
  return {};
}

function createArraySchema(element: JsonObject, shape: readonly number[]): JsonObject {
  return shape.reduceRight<JsonObject>(
    (items: JsonValue, extent) => ({ type: "array", items, minItems: extent, maxItems: extent }),
    element,
  );
}

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
