import { LlamaGymError } from "../../../core/errors.js";
import type { OpenFile } from "../../../core/platform/ports.js";
import { replaceFileAtomic } from "../../../core/files/write-file-atomic.js";
import { float32ToBfloat16, float32ToFloat16 } from "../float16.js";
import { countElements } from "../../../core/numbers.js";

/** Types of saved tensors. */
export type SavedDtype = "F32" | "F16" | "BF16" | "I32";

export interface TensorToSave {
  readonly name: string;
  readonly shape: readonly number[];
  /** Stored type. Default F32. F16 and BF16 round to nearest, ties to even. */
  readonly dtype?: SavedDtype;
  /**
   * Row-major values, or a function that returns them, as a whole or in chunks, so that one tensor
   * or chunk is in memory at a time.
   */
  readonly data: TensorData | (() => TensorData | Promise<TensorData> | AsyncIterable<TensorData>);
}

type TensorData = Float32Array | Int32Array;

const savedDtypeBytes: Readonly<Record<SavedDtype, number>> = { F32: 4, I32: 4, F16: 2, BF16: 2 };

/** Elements rounded to 16 bits at a time. */
const CHUNK_ELEMENTS = 2 ** 19;

/** Returns the bytes of a tensor in the file. */
export function getSavedByteLength(tensor: TensorToSave): number {
  return countElements(tensor.shape) * savedDtypeBytes[tensor.dtype ?? "F32"];
}

interface TensorLayout {
  readonly tensor: TensorToSave;
  readonly dtype: SavedDtype;
  readonly begin: number;
  readonly end: number;
}

/** Orders tensors by descending element size, which aligns them, then by name. */
function layOutTensors(tensors: readonly TensorToSave[]): TensorLayout[] {
  const names = new Set<string>();
  for (const { name } of tensors) {
    if (names.has(name) || name === "__metadata__")
      throw new LlamaGymError("INVALID_ARGUMENT", `Two tensors to save are named "${name}", or the name is reserved.`);
    names.add(name);
  }
  const width = (tensor: TensorToSave): number => savedDtypeBytes[tensor.dtype ?? "F32"];
  const sortedTensors = [...tensors].sort((a, b) => width(b) - width(a) || (a.name < b.name ? -1 : 1));
  let position = 0;
  return sortedTensors.map((tensor) => {
    const begin = position;
    position += getSavedByteLength(tensor);
    return { tensor, dtype: tensor.dtype ?? "F32", begin, end: position };
  });
}

/** Encodes the length and the JSON header, padded to a multiple of 8 bytes. */
function encodeHeader(layouts: readonly TensorLayout[], metadata: Readonly<Record<string, string>>): Uint8Array {
  const fields: [string, unknown][] = [["__metadata__", metadata]];
  for (const { tensor, dtype, begin, end } of layouts)
    fields.push([tensor.name, { dtype, shape: tensor.shape, data_offsets: [begin, end] }]);
  const json = new TextEncoder().encode(JSON.stringify(Object.fromEntries(fields)));
  const length = Math.ceil(json.length / 8) * 8;
  const bytes = new Uint8Array(8 + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(json, 8);
  return bytes;
}

async function writeTensor(file: OpenFile, { tensor, dtype }: TensorLayout): Promise<void> {
  const data = typeof tensor.data === "function" ? await tensor.data() : tensor.data;
  const elements = countElements(tensor.shape);
  let written = 0;
  for await (const chunk of Symbol.asyncIterator in data ? data : [data]) {
    written += chunk.length;
    if (written <= elements) await writeValues(file, chunk, { tensor, dtype });
  }
  if (written !== elements)
    throw new LlamaGymError(
      "SHAPE_MISMATCH",
      `Tensor "${tensor.name}" [${tensor.shape.join(", ")}] requires ${elements} values, got ${written}.`,
    );
}

async function writeValues(
  file: OpenFile,
  data: TensorData,
  { tensor, dtype }: Pick<TensorLayout, "tensor" | "dtype">,
): Promise<void> {
  if ((dtype === "I32") !== data instanceof Int32Array) {
    const given = data instanceof Int32Array ? "Int32Array" : "Float32Array";
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `Tensor "${tensor.name}" of type ${dtype} requires other data than ${given}.`,
    );
  }
  if (data instanceof Int32Array || dtype === "F32") {
    await file.write(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    return;
  }
  const round = dtype === "BF16" ? float32ToBfloat16 : float32ToFloat16;
  const chunk = new Uint16Array(Math.min(data.length, CHUNK_ELEMENTS));
  for (let start = 0; start < data.length; start += chunk.length) {
    const piece = data.subarray(start, start + chunk.length);
    round(piece, chunk);
    await file.write(new Uint8Array(chunk.buffer, 0, piece.length * 2));
  }
}

/**
 * Writes tensors as a safetensors file atomically, one tensor at a time. `metadata` defaults to
 * `{ format: "pt" }`, which Transformers and PEFT require. @throws FILE_WRITE_FAILED,
 * SHAPE_MISMATCH, INVALID_ARGUMENT.
 */
export async function writeSafetensors(
  path: string,
  tensors: readonly TensorToSave[],
  { metadata = { format: "pt" } }: { metadata?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const layouts = layOutTensors(tensors);
  await replaceFileAtomic(path, async (file) => {
    await file.write(encodeHeader(layouts, metadata));
    for (const tensor of layouts) await writeTensor(file, tensor);
  });
}
