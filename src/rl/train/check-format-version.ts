import { LlamaGymError } from "../../core/errors.js";
import type { JsonObject } from "../../models/files/index.js";

/**
 * A saved file without its version. `what` and `advice` are of the message that RUN_INCOMPATIBLE is thrown with where another
 * version of llamagym wrote it.
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
    `${subject} was made by another version of llamagym (layout ${JSON.stringify(version)}, this one reads ${expected}). ${advice}`,
  );
}
