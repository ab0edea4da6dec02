import { LlamaGymError } from "../../../core/errors.js";

/** A JSON object whose members have not been checked yet. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether a parsed JSON value is an object (not an array, not null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An error for a tokenizer file whose content cannot be right. */
export function corruptFileError(problem: string): LlamaGymError {
  return new LlamaGymError("FILE_CORRUPT", `${problem} The file may be truncated: fetch it again.`);
}

/** An error for a tokenizer that is well formed but of a kind this library does not implement. */
export function unsupportedTypeError(part: string, type: unknown, supported: readonly string[]): LlamaGymError {
  return new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `${part} of type ${JSON.stringify(type)} in tokenizer.json is not supported. Supported: ${supported.join(", ")}.`,
  );
}

/** A member that must be an array of objects, each with a type or kind of its own. */
export function readObjectList(config: JsonObject, key: string): readonly JsonObject[] {
  const list = config[key];
  if (!Array.isArray(list) || !list.every(isObject)) {
    throw corruptFileError(`tokenizer.json: "${key}" of ${JSON.stringify(config.type)} must be a list of objects.`);
  }
  return list;
}

/** A member that must be a string. */
export function readString(config: JsonObject, key: string): string {
  const value = config[key];
  if (typeof value !== "string") {
    throw corruptFileError(`tokenizer.json: "${key}" of ${JSON.stringify(config.type)} must be a string.`);
  }
  return value;
}
