import { LlamaGymError } from "../../core/errors.js";
import type { JsonObject } from "../../core/json.js";

/**
 * Checks the format version of a saved file and returns its other keys. @throws RUN_INCOMPATIBLE
 * for another version.
 */
export function checkFormatVersion(
  { version, ...rest }: JsonObject,
  expected: number,
  subject: string,
  advice: string,
): JsonObject {
  if (version === expected) return rest;
  throw new LlamaGymError(
    "RUN_INCOMPATIBLE",
    `${subject} was written by another version of llamagym (format ${JSON.stringify(version)}, expected ${expected}). ${advice}`,
  );
}
