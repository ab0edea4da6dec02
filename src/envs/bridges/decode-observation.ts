import type { JsonValue } from "../../core/json.js";
import { numbersFromJson } from "../spaces/arrays.js";
import { Box } from "../spaces/box.js";
import { Dict } from "../spaces/dict.js";
import type { Space } from "../spaces/space.js";
import { Text } from "../spaces/text.js";
import { Tuple } from "../spaces/tuple.js";
import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { asJsonObject } from "./channel.js";
import { countElements } from "../../core/count-elements.js";

/**
 * Decodes an observation from JSON. Its structure must match the space; out-of-bounds numbers and unlisted characters
 * pass, as in Gymnasium, which only warns about them.
 * @throws INVALID_ARGUMENT when the structure differs.
 */
export function decodeObservation(space: Space, json: JsonValue): unknown {
  if (space instanceof Box) {
    const values = numbersFromJson(json);
    if (values === undefined || values.length !== countElements(space.shape)) throw mismatchError(space, json);
    return (space as Box<"float64">).array(values);
  }
  if (space instanceof Text && typeof json === "string") return json;
  if (space instanceof Tuple && Array.isArray(json) && json.length === space.spaces.length) {
    return space.spaces.map((part, i) => decodeObservation(part, json[i] as JsonValue));
  }
  if (space instanceof Dict) {
    const fields = asJsonObject(json);
    const parts = Object.entries(space.spaces);
    if (fields === undefined || parts.some(([name]) => !Object.hasOwn(fields, name))) throw mismatchError(space, json);
    return Object.fromEntries(parts.map(([name, part]) => [name, decodeObservation(part, fields[name])]));
  }
  return space.decode(json);
}

function mismatchError(space: Space, json: JsonValue): LlamaGymError {
  const text = JSON.stringify(json) ?? "nothing";
  return invalidArgument(`${text.slice(0, 120)} is not of ${space.toString().slice(0, 200)}.`);
}
