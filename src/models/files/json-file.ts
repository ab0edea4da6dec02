import { readFile, stat } from "node:fs/promises";
import { LlamaGymError } from "../../core/errors.js";
import { writeFileAtomic } from "./write-file-atomic.js";
import { corruptFileError, toReadError, errorMessage } from "./file-errors.js";

/** What a JSON text can hold. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** A JSON object: `config.json` and its like. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Maximum size of a JSON file; tokenizer.json of a 262,144-token vocabulary has 35 MB. */
const MAX_JSON_BYTES = 512 * 2 ** 20;

/** Whether a JSON value is an object (and not null or a list). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads a JSON file.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, FORMAT_UNSUPPORTED when it is too large, FILE_CORRUPT
 * when it is not UTF-8 JSON.
 */
export async function readJsonValue(path: string): Promise<JsonValue> {
  let bytes: Uint8Array;
  try {
    const { size } = await stat(path);
    if (size > MAX_JSON_BYTES) {
      throw new LlamaGymError(
        "FORMAT_UNSUPPORTED",
        `${path} has ${size} bytes; a JSON file of a model has at most ${MAX_JSON_BYTES}.`,
      );
    }
    bytes = await readFile(path);
  } catch (error) {
    throw toReadError(path, error);
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as JsonValue;
  } catch (error) {
    const fault = bytes.length === 0 ? "it is empty" : `it is not valid JSON (${errorMessage(error)})`;
    throw corruptFileError(path, fault, error);
  }
}

/**
 * Reads a JSON file that must contain an object. @throws as `readJsonValue`, and FILE_CORRUPT for
 * anything else.
 */
export async function readJson(path: string): Promise<JsonObject> {
  const value = await readJsonValue(path);
  if (!isJsonObject(value)) throw corruptFileError(path, "it does not contain a JSON object");
  return value;
}

/** Reads a JSON object, or returns undefined when the file does not exist. */
export async function readJsonIfExists(path: string): Promise<JsonObject | undefined> {
  try {
    return await readJson(path);
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** Writes a value as indented JSON atomically. @throws FILE_WRITE_FAILED. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
}
