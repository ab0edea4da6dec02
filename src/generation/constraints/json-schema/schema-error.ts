import { LlamaGymError } from "../../../core/errors.js";

/** `path` says where in the schema, as a JSON pointer. */
export function schemaError(path: string, problem: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", `The JSON schema cannot be used: at ${path}, ${problem}.`);
}
