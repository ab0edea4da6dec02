import { fs } from "#platform";
import { errorMessage, LlamaGymError } from "../errors.js";
import { describeUnsavable, MAX_JSON_DEPTH } from "../describe-unsavable.js";
import { isJsonObject, parseBoundedJson, type JsonObject, type JsonValue } from "../json.js";
import { writeFileAtomic } from "./write-file-atomic.js";
import { checkNoLfsPointer, corruptFileError, ignoreMissingFile, toReadError } from "./file-errors.js";

/** Maximum size of a JSON file; tokenizer.json of a 262,144-token vocabulary has 35 MB. */
const MAX_JSON_BYTES = 512 * 2 ** 20;

/** Arrays, objects and strings; the tokenizers with the most tokens and merges have 3 million. */
const MAX_JSON_NODES = 20_000_000;

/** For files that people write as well as programs. */
const JSON_ADVICE = "Correct the file, or copy or download it again.";

const MAX_EXCERPT_LENGTH = 60;

/** Formats a value for a message, shortened to 60 characters. */
export function formatJson(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > MAX_EXCERPT_LENGTH ? `${text.slice(0, MAX_EXCERPT_LENGTH - 3)}...` : text;
}

/** Parses the bytes of a JSON file; `part` names them in messages. @throws FILE_CORRUPT. */
export function parseJson(path: string, bytes: Uint8Array, part = "it"): JsonValue {
  if (bytes.length === 0) throw corruptFileError(path, `${part} is empty`);
  if (isTooDeep(bytes)) throw corruptFileError(path, `${part} is nested more than ${MAX_JSON_DEPTH} levels deep`);
  try {
    return parseBoundedJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes), MAX_JSON_NODES) as JsonValue;
  } catch (error) {
    checkNoLfsPointer(path, bytes);
    throw corruptFileError(path, `${part} is not valid JSON (${errorMessage(error)})`, {
      cause: error,
      advice: JSON_ADVICE,
    });
  }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Whether a JSON text is nested too deep. Unlike `isNestedDeeper` it reads bytes, since parsing
 * millions of levels takes gigabytes.
 */
function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return true;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
  }
  return false;
}

/**
 * Reads a JSON file that must contain an object. @throws FILE_NOT_FOUND, FILE_READ_FAILED,
 * FORMAT_UNSUPPORTED when it is too large, FILE_CORRUPT when it is not UTF-8 JSON with an object.
 */
export async function readJson(path: string): Promise<JsonObject> {
  let bytes: Uint8Array;
  try {
    const { size } = await fs.stat(path);
    if (size > MAX_JSON_BYTES)
      throw new LlamaGymError(
        "FORMAT_UNSUPPORTED",
        `${path} has ${size} bytes; a JSON file of a model has at most ${MAX_JSON_BYTES}.`,
      );
    bytes = await fs.readBytes(path);
  } catch (error) {
    throw toReadError(path, error);
  }
  const value = parseJson(path, bytes);
  if (!isJsonObject(value)) throw corruptFileError(path, "it does not contain a JSON object", { advice: JSON_ADVICE });
  return value;
}

/**
 * Checks that a JSON file can hold a value and be read again. @throws INVALID_STATE, naming the
 * file and the part of the value.
 */
export function checkSavable(path: string, value: unknown): void {
  const problem = describeUnsavable(value);
  if (problem === undefined) return;
  throw new LlamaGymError("INVALID_STATE", `${path} was not written: ${problem}. Correct what computes this value.`);
}

/** Reads a JSON object, or returns undefined when the file does not exist. */
export async function readJsonIfExists(path: string): Promise<JsonObject | undefined> {
  return readJson(path).catch(ignoreMissingFile);
}

/**
 * Writes a value as indented JSON atomically. @throws FILE_WRITE_FAILED, INVALID_STATE for what
 * `readJson` would not read.
 */
export async function writeJson(path: string, value: unknown): Promise<void> {
  checkSavable(path, value);
  await writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
}
