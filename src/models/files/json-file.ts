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

/** The largest JSON file that is read: tokenizer.json of a vocabulary of 262,144 tokens has 35 MB. */
const MAX_JSON_BYTES = 512 * 2 ** 20;

/** Whether a JSON value is an object (and not null or a list). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads a JSON file of any content.
 * Throws FILE_NOT_FOUND, FILE_READ_FAILED, and FILE_CORRUPT when it is not UTF-8 JSON.
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

/** Reads a JSON file that holds an object. Throws as `readJsonValue`, and FILE_CORRUPT for anything but an object. */
export async function readJson(path: string): Promise<JsonObject> {
  const value = await readJsonValue(path);
  if (!isJsonObject(value)) throw corruptFileError(path, "it should hold a JSON object");
  return value;
}

/** The same, undefined where there is no such file. */
export async function readJsonIfExists(path: string): Promise<JsonObject | undefined> {
  try {
    return await readJson(path);
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** Writes a value as indented JSON, the whole file or nothing. Throws FILE_WRITE_FAILED. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
}
