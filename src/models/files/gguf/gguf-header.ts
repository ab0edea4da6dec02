import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../../../core/files/file-errors.js";
import type { FileSource } from "../file-source.js";
import { TruncatedFileError, FormatError, HeaderCursor, type GgufValue } from "./header-cursor.js";
import { getGgmlType, type GgmlType } from "./ggml-types.js";
import { countElements } from "../../../core/numbers.js";

/** Metadata of a GGUF file by key. */
export type GgufMetadata = ReadonlyMap<string, GgufValue>;

/** Description of a GGUF tensor; sizes are ordered from slowest to fastest, as in PyTorch. */
export interface GgufTensor {
  readonly name: string;
  readonly type: GgmlType;
  readonly shape: readonly number[];
  /** Offset from the start of the file, in bytes. */
  readonly offset: number;
  readonly byteLength: number;
}

/** Header of a GGUF file. */
export interface GgufHeader {
  readonly metadata: GgufMetadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** Maximum header length; the largest vocabularies (262,144 tokens) need about 15 MB. */
const MAX_HEADER_BYTES = 64 * 2 ** 20;
const FIRST_READ_BYTES = 4 * 2 ** 20;
const MAX_DIMENSIONS = 4;
const DEFAULT_ALIGNMENT = 32;

/**
 * Reads and validates the header of a GGUF file (versions 1 to 3): all counts and lengths against
 * the file size, and the position of every tensor. @throws FILE_CORRUPT, and FORMAT_UNSUPPORTED for
 * big-endian files and unknown versions. \@huggingface/gguf is not used: it reads zeros beyond the
 * end of a local file, which hides truncation, and allocates hundreds of megabytes for a 24-byte
 * file that claims ten million tensors.
 */
export async function readGgufHeader(source: FileSource): Promise<GgufHeader> {
  const { path, size } = source;
  let length = Math.min(size, FIRST_READ_BYTES);
  for (;;) {
    const bytes = await source.bytes(0, length);
    try {
      return parseHeader(path, new HeaderCursor(bytes, size), size);
    } catch (error) {
      if (error instanceof FormatError) throw corruptFileError(path, error.message, { cause: error });
      if (!(error instanceof TruncatedFileError)) throw error;
    }
    if (length === MAX_HEADER_BYTES)
      throw corruptFileError(path, `its header is longer than ${MAX_HEADER_BYTES} bytes`);
    length = Math.min(size, MAX_HEADER_BYTES, length * 4);
  }
}

function parseHeader(path: string, cursor: HeaderCursor, fileSize: number): GgufHeader {
  checkVersion(path, cursor);
  // Version 1 has 32-bit counts; a field then takes at least 9 bytes and a tensor 20.
  const hasWideSizes = cursor.sizeBytes === 8;
  const tensorCount = cursor.count("tensors", hasWideSizes ? 24 : 20);
  const fieldCount = cursor.count("metadata fields", hasWideSizes ? 13 : 9);

  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < fieldCount; i++) {
    const key = cursor.readString("a metadata key");
    if (metadata.has(key)) throw new FormatError(`its metadata field "${key}" is duplicated`);
    metadata.set(key, cursor.value(key));
  }

  const tensorInfos: { name: string; shape: number[]; type: GgmlType; offset: number }[] = [];
  for (let i = 0; i < tensorCount; i++) tensorInfos.push(readTensorInfo(path, cursor));
  const alignment = readAlignment(metadata);
  const dataStart = Math.ceil(cursor.position / alignment) * alignment;
  const tensors = new Map<string, GgufTensor>();
  for (const { name, shape, type, offset } of tensorInfos) {
    if (tensors.has(name)) throw new FormatError(`its tensor "${name}" is duplicated`);
    if (offset % alignment !== 0) throw new FormatError(`its tensor "${name}" is not aligned to ${alignment} bytes`);
    const byteLength = (countElements(shape) / type.blockSize) * type.blockBytes;
    if (dataStart + offset + byteLength > fileSize)
      throw new FormatError(
        `its tensor "${name}" needs ${byteLength} bytes at ${dataStart + offset}, but the file has ${fileSize}`,
      );
    tensors.set(name, { name, type, shape, offset: dataStart + offset, byteLength });
  }
  checkNoOverlap(tensors);
  return { metadata, tensors };
}

function checkVersion(path: string, cursor: HeaderCursor): void {
  // "GGUF" in little-endian order.
  if (cursor.readUint32() !== 0x46554747) throw new FormatError("it does not begin with GGUF");
  const version = cursor.readUint32();
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

function readTensorInfo(
  path: string,
  cursor: HeaderCursor,
): { name: string; shape: number[]; type: GgmlType; offset: number } {
  const name = cursor.readString("a tensor's name");
  const dimensions = cursor.readUint32();
  if (dimensions > MAX_DIMENSIONS) throw new FormatError(`its tensor "${name}" has ${dimensions} dimensions`);
  const shape: number[] = [];
  for (let i = 0; i < dimensions; i++) shape.unshift(cursor.readSize(`a size of the tensor "${name}"`));
  if (!Number.isSafeInteger(countElements(shape))) throw new FormatError(`its tensor "${name}" is too large`);
  const code = cursor.readUint32();
  const type = getGgmlType(code);
  if (type === undefined)
    throw new LlamaGymError("FORMAT_UNSUPPORTED", `Tensor "${name}" in ${path} has the unknown GGML type ${code}.`);
  if ((shape.at(-1) ?? 1) % type.blockSize !== 0)
    throw new FormatError(`its tensor "${name}" [${shape.join(", ")}] is not made of ${type.name} blocks`);
  return { name, shape, type, offset: cursor.readUint64(`the offset of the tensor "${name}"`) };
}

function readAlignment(metadata: GgufMetadata): number {
  const alignment = metadata.get("general.alignment") ?? DEFAULT_ALIGNMENT;
  if (typeof alignment === "number" && Number.isInteger(alignment) && alignment >= 1 && alignment <= 65_536)
    return alignment;
  throw new FormatError(`its general.alignment is ${String(alignment)}`);
}

function checkNoOverlap(tensors: ReadonlyMap<string, GgufTensor>): void {
  const sortedTensors = [...tensors.values()].sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  for (let i = 1; i < sortedTensors.length; i++) {
    const previous = sortedTensors[i - 1];
    if (sortedTensors[i].offset < previous.offset + previous.byteLength)
      throw new FormatError(`its tensors "${previous.name}" and "${sortedTensors[i].name}" overlap`);
  }
}
