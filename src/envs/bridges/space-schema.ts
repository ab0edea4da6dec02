import type { JsonValue } from "../../core/json.js";
import { Box } from "../spaces/box.js";
import { Dict } from "../spaces/composite.js";
import { Discrete } from "../spaces/discrete.js";
import { MultiBinary } from "../spaces/multi-binary.js";
import { MultiDiscrete } from "../spaces/multi-discrete.js";
import { Sequence } from "../spaces/sequence.js";
import type { Space } from "../spaces/space.js";
import { Text } from "../spaces/text.js";
import { Tuple } from "../spaces/composite.js";
import type { JsonObject } from "./channel.js";
import { countElements } from "../../core/count-elements.js";

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
  if (space instanceof Sequence) return { type: "array", items: spaceToSchema(space.featureSpace as Space) };
  return {};
}

function createArraySchema(element: JsonObject, shape: readonly number[]): JsonObject {
  return shape.reduceRight<JsonObject>(
    (items: JsonValue, extent) => ({ type: "array", items, minItems: extent, maxItems: extent }),
    element,
  );
}
