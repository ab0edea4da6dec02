import { LlamaGymError } from "../errors.js";
import type { JsonObject } from "../files/index.js";

/**
 * A saved file without its version. `what` and `advice` are of the message that RUN_INCOMPATIBLE is thrown with where another
 * version of llamagym wrote it.
 */
export function withoutVersion(
  { version, ...rest }: JsonObject,
  expected: number,
  what: string,
  advice: string,
): JsonObject {
  if (version === expected) return rest;
  throw new LlamaGymError(
    "RUN_INCOMPATIBLE",
    `${what} was made by another version of llamagym (layout ${JSON.stringify(version)}, this one reads ${expected}). ${advice}`,
  );
}
