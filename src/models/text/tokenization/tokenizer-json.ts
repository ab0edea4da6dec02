import { LlamaGymError } from "../../../core/errors.js";
import { isNestedDeeper } from "../../../core/json.js";

/** An unvalidated JSON object. */
export type JsonRecord = { readonly [key: string]: unknown };

/** Whether a JSON value is an object (not an array or null). */
export function isObject(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Creates FILE_CORRUPT for an invalid tokenizer file. */
export function corruptFileError(problem: string): LlamaGymError {
  return new LlamaGymError("FILE_CORRUPT", `${problem} The file may be truncated: fetch it again.`);
}

/** Maximum nesting of a tokenizer's files; published ones have 8 levels. */
const MAX_JSON_DEPTH = 100;

/** Checks that a file of a tokenizer is an object. @throws FILE_CORRUPT */
export function requireObject(value: unknown, file: string): JsonRecord {
  if (!isObject(value)) throw corruptFileError(`${file} must hold a JSON object.`);
  if (isNestedDeeper(value, MAX_JSON_DEPTH))
    throw corruptFileError(`${file} is nested more than ${MAX_JSON_DEPTH} levels deep.`);
  return value;
}

/** Returns the object of a file that may be missing. @throws FILE_CORRUPT */
export function optionalObject(value: unknown, file: string): JsonRecord {
  return value === undefined || value === null ? {} : requireObject(value, file);
}

/** Creates TOKENIZER_UNSUPPORTED for an unimplemented type. */
export function unsupportedTypeError(part: string, type: unknown, supported: readonly string[]): LlamaGymError {
  return new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `${part} of type ${JSON.stringify(type)} in tokenizer.json is not supported. Supported: ${supported.join(", ")}.`,
  );
}

/** Reads a member that must be a list of objects. */
export function readObjectList(config: JsonRecord, key: string): readonly JsonRecord[] {
  const list = config[key];
  if (!Array.isArray(list) || !list.every(isObject))
    throw corruptFileError(`tokenizer.json: "${key}" of ${JSON.stringify(config.type)} must be a list of objects.`);
  return list;
}

/** Reads a member that must be a string. */
export function readString(config: JsonRecord, key: string): string {
  const value = config[key];
  if (typeof value !== "string")
    throw corruptFileError(`tokenizer.json: "${key}" of ${JSON.stringify(config.type)} must be a string.`);
  return value;
}

/** Looks up how a part of tokenizer.json is created, by its type. @throws TOKENIZER_UNSUPPORTED */
export function readPart<Options, Part>(
  name: string,
  config: unknown,
  types: Readonly<Record<string, (config: JsonRecord, options: Options) => Part>>,
): (options: Options) => Part {
  const type = isObject(config) ? config.type : config;
  if (!isObject(config) || typeof type !== "string" || !Object.hasOwn(types, type))
    throw unsupportedTypeError(name, type, Object.keys(types));
  return (options) => types[type](config, options);
}
