import { countElements } from "../../core/numbers.js";
import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Box, CompositeSpace, Text, Tuple, numbersFromJson, type Space } from "../spaces/index.js";
import { formatJson } from "./channel.js";

/**
 * Decodes an observation from JSON. Its structure must match the space; out-of-bounds numbers and
 * unlisted characters pass, as in Gymnasium, which only warns about them.
 * @throws INVALID_ARGUMENT when the structure differs.
 */
export function decodeObservation(space: Space, json: JsonValue): unknown {
  const mismatchError = () => invalidArgument(`${formatJson(json, 120)} is not of ${formatJson(space.toString())}.`);
  if (space instanceof Box) {
    const values = numbersFromJson(json);
    if (values === undefined || values.length !== countElements(space.shape)) throw mismatchError();
    return (space as Box<"float64">).array(values);
  }
  if (space instanceof Text && typeof json === "string") return json;
  if (space instanceof CompositeSpace) {
    const isTuple = Array.isArray(json) && json.length === space.parts.length;
    const isContainer = space instanceof Tuple ? isTuple : typeof json === "object" && json !== null;
    if (!isContainer || space.names.some((name) => !Object.hasOwn(json as object, name))) throw mismatchError();
    return space.join(space.split(json).map((part, i) => decodeObservation(space.parts[i], part as JsonValue)));
  }
  return space.decode(json);
}
