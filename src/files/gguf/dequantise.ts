import { LlamaGymError } from "../../errors.js";
import { wideningOf } from "../safetensors/dtypes.js";
import {
  dequantiseIQ4_NL,
  dequantiseIQ4_XS,
  dequantiseQ4_0,
  dequantiseQ4_1,
  dequantiseQ5_0,
  dequantiseQ5_1,
  dequantiseQ8_0,
  type Dequantise,
} from "./dequantise-blocks.js";
import { dequantiseQ2_K, dequantiseQ3_K, dequantiseQ4_K, dequantiseQ5_K, dequantiseQ6_K } from "./dequantise-k.js";
import { ggmlTypeByName } from "./types.js";

const blockFormats: Readonly<Record<string, Dequantise>> = {
  Q4_0: dequantiseQ4_0,
  Q4_1: dequantiseQ4_1,
  Q5_0: dequantiseQ5_0,
  Q5_1: dequantiseQ5_1,
  Q8_0: dequantiseQ8_0,
  Q2_K: dequantiseQ2_K,
  Q3_K: dequantiseQ3_K,
  Q4_K: dequantiseQ4_K,
  Q5_K: dequantiseQ5_K,
  Q6_K: dequantiseQ6_K,
  IQ4_NL: dequantiseIQ4_NL,
  IQ4_XS: dequantiseIQ4_XS,
};

/** The types without blocks, which both formats know by the same names. */
const plainTypes = ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"];

/** The GGML types that can be read as float32. */
export const readableGgmlTypes: readonly string[] = [...plainTypes, ...Object.keys(blockFormats)];

/**
 * The function that widens whole blocks of a GGML type into float32, or undefined for F32, whose bytes need no change.
 * Throws FORMAT_UNSUPPORTED for a type that cannot be read.
 */
export function dequantisationOf(
  type: string,
  name: string,
  path: string,
): ((bytes: Uint8Array<ArrayBuffer>, target: Float32Array) => void) | undefined {
  if (plainTypes.includes(type)) return wideningOf(type, name, path);
  if (Object.hasOwn(blockFormats, type)) return blockFormats[type];
  throw new LlamaGymError(
    "FORMAT_UNSUPPORTED",
    `Tensor "${name}" in ${path} is stored as ${type}, which cannot be read. Supported: ${readableGgmlTypes.join(", ")}. ` +
      "Get the model in one of these, or requantise it with llama.cpp's llama-quantize.",
  );
}

/**
 * Widens the raw blocks of a GGML type (as `readRaw` gives them) into float32.
 * `target` has as many numbers as the blocks hold. Throws FORMAT_UNSUPPORTED, SHAPE_MISMATCH.
 */
export function dequantise(type: string, bytes: Uint8Array<ArrayBuffer>, target: Float32Array): Float32Array {
  const widen = dequantisationOf(type, "given", "memory");
  const { blockSize, blockBytes } = ggmlTypeByName(type) ?? { blockSize: 1, blockBytes: 1 };
  if (bytes.length % blockBytes !== 0 || (bytes.length / blockBytes) * blockSize !== target.length) {
    throw new LlamaGymError("SHAPE_MISMATCH", `${bytes.length} bytes of ${type} do not hold ${target.length} numbers.`);
  }
  if (widen !== undefined) widen(bytes, target);
  else new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes);
  return target;
}
