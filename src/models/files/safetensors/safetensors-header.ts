import { type JsonObject, type JsonValue, isJsonObject } from "../../../core/json.js";
import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../../../core/files/file-errors.js";
import { parseJson } from "../../../core/files/json-file.js";
import type { FileSource } from "../file-source.js";
import type { WeightEntry } from "../weight-file.js";
import { dtypeBits } from "./dtypes.js";
import { countElements } from "../../../core/numbers.js";

/** Limit of the format. */
const MAX_HEADER_BYTES = 100_000_000;

/** Header of a safetensors file. */
export interface SafetensorsHeader {
  readonly entries: ReadonlyMap<string, WeightEntry>;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Reads and validates the header of a safetensors file: its length, its JSON, and that tensors of
 * the right size fill the file without gaps or overlaps. @throws FILE_CORRUPT, FORMAT_UNSUPPORTED.
 */
export async function readSafetensorsHeader(source: FileSource): Promise<SafetensorsHeader> {
  const { path, size } = source;
  if (size < 8) throw corruptFileError(path, `it has ${size} bytes, fewer than the 8 of a safetensors header`);
  const prefix = await source.bytes(0, 8);
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  if (length > BigInt(Math.min(MAX_HEADER_BYTES, size - 8)))
    throw corruptFileError(path, `its header claims ${length} bytes, but the file has ${size}`);
  const headerBytes = Number(length);
  const text = await source.bytes(8, headerBytes);
  return parseHeader(path, text, 8 + headerBytes, size);
}

function parseHeader(path: string, bytes: Uint8Array, dataStart: number, fileSize: number): SafetensorsHeader {
  const header = parseJson(path, bytes, "its header");
  if (!isJsonObject(header)) throw corruptFileError(path, "its header is not a JSON object");
  const duplicate = findDuplicateKey(new TextDecoder().decode(bytes));
  if (duplicate !== undefined) throw corruptFileError(path, `its header names the tensor "${duplicate}" twice`);

  const entries = new Map<string, WeightEntry>();
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(header)) {
    if (name === "__metadata__") metadata = readMetadata(path, value);
    else entries.set(name, readEntry(path, name, value, dataStart, fileSize));
  }
  checkLayout(path, entries, dataStart, fileSize);
  return { entries, metadata };
}

function readMetadata(path: string, value: JsonValue): Record<string, string> {
  if (!isJsonObject(value)) throw corruptFileError(path, "its __metadata__ is not an object");
  const metadata: Record<string, string> = {};
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") throw corruptFileError(path, `its __metadata__ field "${key}" is not a string`);
    metadata[key] = text;
  }
  return metadata;
}

function readEntry(path: string, name: string, value: JsonValue, dataStart: number, fileSize: number): WeightEntry {
  if (!isJsonObject(value)) throw corruptFileError(path, `the header's field "${name}" is not an object`);
  const { dtype } = value;
  if (typeof dtype !== "string") throw corruptFileError(path, `tensor "${name}" has no dtype`);
  const bits = Object.hasOwn(dtypeBits, dtype) ? dtypeBits[dtype] : undefined;
  if (bits === undefined)
    throw new LlamaGymError("FORMAT_UNSUPPORTED", `Tensor "${name}" in ${path} has the unknown dtype "${dtype}".`);
  const shape = readShape(path, name, value);
  const [begin, end] = readOffsets(path, name, value);
  if (begin > end || dataStart + end > fileSize)
    throw corruptFileError(path, `tensor "${name}" lies at bytes ${begin} to ${end}, outside the file's data`);
  const byteLength = end - begin;
  if (byteLength * 8 !== countElements(shape) * bits) {
    const expected = (countElements(shape) * bits) / 8;
    throw corruptFileError(
      path,
      `tensor "${name}" (${dtype} [${shape.join(", ")}]) has ${byteLength} bytes, not ${expected}`,
    );
  }
  return { name, dtype, shape, file: path, offset: dataStart + begin, byteLength, mappable: true };
}

function isNonNegativeInteger(value: JsonValue): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function readShape(path: string, name: string, { shape }: JsonObject): number[] {
  if (!Array.isArray(shape) || shape.length > 16 || !shape.every(isNonNegativeInteger))
    throw corruptFileError(path, `tensor "${name}" has no valid shape`);
  if (!Number.isSafeInteger(countElements(shape)))
    throw corruptFileError(path, `the shape of tensor "${name}" is too large`);
  return shape;
}

function readOffsets(path: string, name: string, { data_offsets: offsets }: JsonObject): [number, number] {
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isNonNegativeInteger))
    throw corruptFileError(path, `tensor "${name}" has no valid data_offsets`);
  return [offsets[0], offsets[1]];
}

/** Checks that there are no gaps, no overlaps and no data after the last tensor. */
function checkLayout(path: string, entries: Map<string, WeightEntry>, dataStart: number, fileSize: number): void {
  let position = dataStart;
  let previous = "the header";
  const sortedEntries = [...entries.values()].sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  for (const { name, offset, byteLength } of sortedEntries) {
    if (offset < position) throw corruptFileError(path, `tensor "${name}" overlaps "${previous}"`);
    if (offset > position)
      throw corruptFileError(path, `there is a gap of ${offset - position} bytes before tensor "${name}"`);
    position = offset + byteLength;
    previous = name;
  }
  if (position !== fileSize)
    throw corruptFileError(path, `its tensors end at byte ${position}, but the file has ${fileSize} bytes`);
}

/** Returns the first duplicate key of a valid JSON object, which JSON.parse would ignore. */
function findDuplicateKey(text: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") depth -= 1;
    else if (character === '"') {
      const end = findStringEnd(text, i);
      if (depth === 1 && isKey(text, end)) {
        const key = JSON.parse(text.slice(i, end)) as string;
        if (seen.has(key)) return key;
        seen.add(key);
      }
      i = end - 1;
    }
  }
  return undefined;
}

/** Returns the index after the closing quote of the string opened at `start`. */
function findStringEnd(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
  return i + 1;
}

function isKey(text: string, end: number): boolean {
  let i = end;
  while (text[i] === " " || text[i] === "\n" || text[i] === "\r" || text[i] === "\t") i += 1;
  return text[i] === ":";
}
