import { Dict } from "./dict.js";
import { toInt } from "./numbers.js";
import { Float, Undefined, type Value } from "./values.js";

/** Converts a JSON value. @throws for anything else. */
export function toValue(content: unknown): Value {
  switch (typeof content) {
    case "string":
    case "boolean":
      return content;
    case "number":
      return Number.isSafeInteger(content)
        ? content
        : Number.isInteger(content)
          ? toInt(BigInt(content))
          : new Float(content);
    case "bigint":
      return toInt(content);
    case "undefined":
      return new Undefined();
    case "object":
      if (content === null) return null;
      if (Array.isArray(content)) return content.map(toValue);
      return new Dict(Object.entries(content).map(([name, entry]) => [name, toValue(entry)]));
    default:
      throw new Error(`a ${typeof content} is not a JSON value`);
  }
}
