import { JsonNumber, jsonEntries, jsonItems } from "../../../core/lossless-json.js";
import { PythonDict } from "./dict.js";
import { toInt } from "./numbers.js";
import { Float, Undefined, type Value } from "./values.js";

/**
 * Converts a JSON value, with numbers and keys as they were written; a Map is an object too.
 * @throws for anything else.
 */
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
      if (Array.isArray(content)) return jsonItems(content).map(toValue);
      if (content instanceof JsonNumber)
        return content.isFloat ? new Float(Number(content.text)) : toInt(BigInt(content.text));
      return new PythonDict(
        Array.from(
          content instanceof Map ? (content as Map<string, unknown>) : jsonEntries(content),
          ([name, entry]) => [name, toValue(entry)],
        ),
      );
    default:
      throw new Error(`a ${typeof content} is not a JSON value`);
  }
}
