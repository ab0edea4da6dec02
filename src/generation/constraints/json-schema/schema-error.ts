import { invalidArgument, type LlamaGymError } from "../../../core/errors.js";

/** Creates an INVALID_ARGUMENT error for the part of a schema at `path`, a JSON pointer. */
export function schemaError(path: string, problem: string): LlamaGymError {
  return invalidArgument(`Invalid JSON schema: at ${path}, ${problem}.`);
}
