import { errorMessage } from "../../core/errors.js";
import { parseLosslessJson } from "../../core/lossless-json.js";

/**
 * Returns the JSON value of a field that may also be JSON as text, the only way to write it in a
 * CSV cell. @throws Error with the reason.
 */
export function readJsonField(name: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return parseLosslessJson(value);
  } catch (error) {
    throw new Error(`has ${JSON.stringify(name)} as text that is not JSON (${errorMessage(error)})`, { cause: error });
  }
}
