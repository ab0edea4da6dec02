import { concatBytes, encodeUtf8, viewBytes } from "../../../core/bytes.js";
import { countElements } from "../../../core/numbers.js";
import { replaceFileAtomic } from "../../../core/files/write-file-atomic.js";
import { float32ToFloat16 } from "../../files/float16.js";
import { getGgmlType, getGgmlTypeCode } from "../../files/gguf/ggml-types.js";
import { BLOCK_SIZE, quantize } from "../../weights/quantize.js";

/** Stored type of a GGUF tensor that this library writes. */
export type GgufTensorType = "F32" | "F16" | "Q8_0" | "Q4_0";

/** A metadata value; numbers are uint32, floats are wrapped, as GGUF distinguishes them. */
export type GgufFieldValue =
  | number
  | string
  | boolean
  | { readonly float: number }
  | readonly string[]
  | readonly boolean[]
  | Int32Array
  | Float32Array;

/** A tensor to write, in llama.cpp's layout. */
export interface GgufTensorToSave {
  readonly name: string;
  /** Sizes from slowest to fastest, as in PyTorch. */
  readonly shape: readonly number[];
  readonly type: GgufTensorType;
  /** Returns the values, as a whole or in chunks of whole rows. */
  readonly readChunks: () => AsyncIterable<Float32Array> | Iterable<Float32Array>;
}

const VERSION = 3;
const ALIGNMENT = 32;

/** Value type codes of GGUF. */
const TYPES = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

/**
 * Writes a GGUF file (version 3) atomically, one chunk of a tensor at a time. @throws
 * FILE_WRITE_FAILED.
 */
export async function writeGguf(
  path: string,
  fields: Readonly<Record<string, GgufFieldValue>>,
  tensors: readonly GgufTensorToSave[],
): Promise<void> {
  const entries = Object.entries(fields);
  const infos: Uint8Array[] = [];
  let offset = 0;
  for (const { name, shape, type } of tensors) {
    const sizes = [...shape].reverse().map(encodeUint64);
    const code = getGgmlTypeCode(type);
    infos.push(encodeString(name), encodeUint32(shape.length), ...sizes, encodeUint32(code), encodeUint64(offset));
    const { blockSize, blockBytes } = getGgmlType(code)!;
    offset = align(offset + (countElements(shape) / blockSize) * blockBytes);
  }
  const header = concatBytes([
    encodeUtf8("GGUF"),
    encodeUint32(VERSION),
    encodeUint64(tensors.length),
    encodeUint64(entries.length),
    ...entries.flatMap(([key, value]) => [encodeString(key), ...encodeField(value)]),
    ...infos,
  ]);
  await replaceFileAtomic(path, async (file) => {
    await file.write(padToAlignment(header));
    for (const { type, readChunks } of tensors) {
      let size = 0;
      for await (const chunk of readChunks()) {
        const bytes = encodeTensor(chunk, type);
        await file.write(bytes);
        size += bytes.length;
      }
      await file.write(new Uint8Array(align(size) - size));
    }
  });
}

const align = (size: number): number => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

function padToAlignment(bytes: Uint8Array): Uint8Array {
  const padding = align(bytes.length) - bytes.length;
  return padding === 0 ? bytes : concatBytes([bytes, new Uint8Array(padding)]);
}

function encodeUint32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function encodeUint64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

function encodeString(text: string): Uint8Array {
  const bytes = encodeUtf8(text);
  return concatBytes([encodeUint64(bytes.length), bytes]);
}

/** Encodes a value behind its type. */
function encodeField(value: GgufFieldValue): Uint8Array[] {
  if (typeof value === "string") return [encodeUint32(TYPES.string), encodeString(value)];
  if (typeof value === "boolean") return [encodeUint32(TYPES.bool), Uint8Array.of(Number(value))];
  if (typeof value === "number") return [encodeUint32(TYPES.uint32), encodeUint32(value)];
  if ("float" in value) return [encodeUint32(TYPES.float32), viewBytes(Float32Array.of(value.float))];
  const array = (type: number) => [encodeUint32(TYPES.array), encodeUint32(type), encodeUint64(value.length)];
  if (value instanceof Int32Array) return [...array(TYPES.int32), viewBytes(value)];
  if (value instanceof Float32Array) return [...array(TYPES.float32), viewBytes(value)];
  if (isBooleanList(value)) return [...array(TYPES.bool), Uint8Array.from(value, Number)];
  return [...array(TYPES.string), ...value.map(encodeString)];
}

function isBooleanList(value: readonly unknown[]): value is readonly boolean[] {
  return typeof value[0] === "boolean";
}

function encodeTensor(values: Float32Array, type: GgufTensorType): Uint8Array {
  if (type === "F32") return viewBytes(values);
  if (type === "F16") return viewBytes(toFloat16(values));
  return encodeBlocks(values, type === "Q8_0" ? 8 : 4);
}

function toFloat16(values: Float32Array): Uint16Array {
  const halves = new Uint16Array(values.length);
  float32ToFloat16(values, halves);
  return halves;
}

/**
 * Encodes blocks of a float16 scale and 32 codes: signed bytes, or half bytes whose low halves come
 * first.
 */
function encodeBlocks(values: Float32Array, bits: 4 | 8): Uint8Array {
  const { codes, scales } = quantize(values, bits);
  const scaleBytes = viewBytes(toFloat16(scales));
  const codeBytes = (BLOCK_SIZE * bits) / 8;
  const blockBytes = codeBytes + 2;
  const result = new Uint8Array(scales.length * blockBytes);
  for (let block = 0; block < scales.length; block++) {
    const start = block * blockBytes;
    const from = block * codeBytes;
    result[start] = scaleBytes[2 * block];
    result[start + 1] = scaleBytes[2 * block + 1];
    for (let i = 0; i < codeBytes; i++) {
      // Codes are around 128 or 8; two consecutive 4-bit codes share a byte.
      const code = (index: number) => (codes[from + (index >> 1)] >> (4 * (index % 2))) & 15;
      result[start + 2 + i] = bits === 8 ? codes[from + i] - 128 : code(i) | (code(i + codeBytes) << 4);
    }
  }
  return result;
}
