import { LlamaGymError } from "../../errors.js";
import { corrupt } from "../failure.js";
import type { FileSource } from "../source.js";
import { EndOfBytes, FormatFault, HeaderCursor, type GgufValue } from "./cursor.js";
import { ggmlType, type GgmlType } from "./types.js";
import { elementCount } from "../../tensor/tensor.js";

/** The names and values that a GGUF file says about its model. */
export type GgufMetadata = ReadonlyMap<string, GgufValue>;

/** A tensor as the GGUF file describes it, with its sizes from the slowest to the fastest (as in PyTorch). */
export interface GgufTensor {
  readonly name: string;
  readonly type: GgmlType;
  readonly shape: readonly number[];
  /** Where the bytes begin, counted from the start of the file. */
  readonly offset: number;
  readonly byteLength: number;
}

/** What stands before the tensors of a GGUF file. */
export interface GgufHeader {
  readonly metadata: GgufMetadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** The longest header that is read; the largest vocabularies (262,144 tokens) need some 15 MB. */
const MAX_HEADER_BYTES = 64 * 2 ** 20;
const FIRST_READ_BYTES = 4 * 2 ** 20;
const MAX_DIMENSIONS = 4;
const DEFAULT_ALIGNMENT = 32;

/**
 * Reads and checks the header of a GGUF file (versions 1 to 3): every count and length against the file's size, and
 * every tensor's place. Throws FILE_CORRUPT, and FORMAT_UNSUPPORTED for big-endian files and unknown versions.
 *
 * (\@huggingface/gguf reads zeros beyond the end of a local file, so that it takes a truncated file for a whole one, and
 * allocates hundreds of megabytes for a file of 24 bytes that claims ten million tensors.)
 */
export async function readGgufHeader(source: FileSource): Promise<GgufHeader> {
  const { path, size } = source;
  let length = Math.min(size, FIRST_READ_BYTES);
  for (;;) {
    const bytes = await source.bytes(0, length);
    try {
      return parse(path, new HeaderCursor(bytes, size), size);
    } catch (error) {
      if (error instanceof FormatFault) throw corrupt(path, error.message, error);
      if (!(error instanceof EndOfBytes)) throw error;
    }
    if (length === MAX_HEADER_BYTES) throw corrupt(path, `its header is longer than ${MAX_HEADER_BYTES} bytes`);
    length = Math.min(size, MAX_HEADER_BYTES, length * 4);
  }
}

function parse(path: string, cursor: HeaderCursor, fileSize: number): GgufHeader {
  checkVersion(path, cursor);
  // Version 1 gives counts as 32 bits, and with them a field takes at least 9 bytes and a tensor 20.
  const wide = cursor.sizeBytes === 8;
  const tensorCount = cursor.count("tensors", wide ? 24 : 20);
  const fieldCount = cursor.count("metadata fields", wide ? 13 : 9);

  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < fieldCount; i++) {
    const key = cursor.string("a metadata key");
    if (metadata.has(key)) throw new FormatFault(`its metadata field "${key}" stands there twice`);
    metadata.set(key, cursor.value(key));
  }

  const described: { name: string; shape: number[]; type: GgmlType; offset: number }[] = [];
  for (let i = 0; i < tensorCount; i++) described.push(readTensor(path, cursor));
  const alignment = alignmentOf(metadata);
  const dataStart = Math.ceil(cursor.position / alignment) * alignment;
  const tensors = new Map<string, GgufTensor>();
  for (const { name, shape, type, offset } of described) {
    if (tensors.has(name)) throw new FormatFault(`its tensor "${name}" stands there twice`);
    if (offset % alignment !== 0) throw new FormatFault(`its tensor "${name}" is not aligned to ${alignment} bytes`);
    const byteLength = (elementCount(shape) / type.blockSize) * type.blockBytes;
    if (dataStart + offset + byteLength > fileSize) {
      throw new FormatFault(
        `its tensor "${name}" needs ${byteLength} bytes at ${dataStart + offset}, but the file has ${fileSize} in all`,
      );
    }
    tensors.set(name, { name, type, shape, offset: dataStart + offset, byteLength });
  }
  checkOverlap(tensors);
  return { metadata, tensors };
}

function checkVersion(path: string, cursor: HeaderCursor): void {
  // "GGUF" in little-endian order.
  if (cursor.uint32() !== 0x46554747) throw new FormatFault("it does not begin with GGUF");
  const version = cursor.uint32();
  if (version >= 1 && version <= 3) {
    if (version === 1) cursor.sizeBytes = 4;
    return;
  }
  const bigEndian = (version & 0xffff) === 0 && version !== 0;
  throw new LlamaGymError(
    "FORMAT_UNSUPPORTED",
    bigEndian
      ? `${path} is a big-endian GGUF file. Convert the model again for a little-endian machine.`
      : `${path} is GGUF version ${version}; versions 1 to 3 are supported.`,
  );
}

function readTensor(
  path: string,
  cursor: HeaderCursor,
): { name: string; shape: number[]; type: GgmlType; offset: number } {
  const name = cursor.string("a tensor's name");
  const dimensions = cursor.uint32();
  if (dimensions > MAX_DIMENSIONS) throw new FormatFault(`its tensor "${name}" has ${dimensions} dimensions`);
  const shape: number[] = [];
  for (let i = 0; i < dimensions; i++) shape.unshift(cursor.size(`a size of the tensor "${name}"`));
  if (!Number.isSafeInteger(elementCount(shape))) throw new FormatFault(`its tensor "${name}" is too large`);
  const code = cursor.uint32();
  const type = ggmlType(code);
  if (type === undefined) {
    throw new LlamaGymError("FORMAT_UNSUPPORTED", `Tensor "${name}" in ${path} has the unknown GGML type ${code}.`);
  }
  if ((shape.at(-1) ?? 1) % type.blockSize !== 0) {
    throw new FormatFault(`its tensor "${name}" [${shape.join(", ")}] is not made of ${type.name} blocks`);
  }
  return { name, shape, type, offset: cursor.wide(`the offset of the tensor "${name}"`) };
}

function alignmentOf(metadata: GgufMetadata): number {
  const alignment = metadata.get("general.alignment") ?? DEFAULT_ALIGNMENT;
  if (typeof alignment === "number" && Number.isInteger(alignment) && alignment >= 1 && alignment <= 65_536) {
    return alignment;
  }
  throw new FormatFault(`its general.alignment is ${String(alignment)}`);
}

function checkOverlap(tensors: ReadonlyMap<string, GgufTensor>): void {
  const inOrder = [...tensors.values()].sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  for (let i = 1; i < inOrder.length; i++) {
    const previous = inOrder[i - 1];
    if (inOrder[i].offset < previous.offset + previous.byteLength) {
      throw new FormatFault(`its tensors "${previous.name}" and "${inOrder[i].name}" overlap`);
    }
  }
}
