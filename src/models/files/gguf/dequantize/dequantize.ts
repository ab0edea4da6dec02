import { LlamaGymError } from "../../../../core/errors.js";
import { getWidenFunction } from "../../safetensors/dtypes.js";
import {
  dequantizeIQ4_NL,
  dequantizeIQ4_XS,
  dequantizeQ4_0,
  dequantizeQ4_1,
  dequantizeQ5_0,
  dequantizeQ5_1,
  dequantizeQ8_0,
  type DequantizeFunction,
} from "./dequantize-blocks.js";
import {
  dequantizeQ2_K,
  dequantizeQ3_K,
  dequantizeQ4_K,
  dequantizeQ5_K,
  dequantizeQ6_K,
} from "./dequantize-k-blocks.js";

const blockFormats: Readonly<Record<string, DequantizeFunction>> = {
  Q4_0: dequantizeQ4_0,
  Q4_1: dequantizeQ4_1,
  Q5_0: dequantizeQ5_0,
  Q5_1: dequantizeQ5_1,
  Q8_0: dequantizeQ8_0,
  Q2_K: dequantizeQ2_K,
  Q3_K: dequantizeQ3_K,
  Q4_K: dequantizeQ4_K,
  Q5_K: dequantizeQ5_K,
  Q6_K: dequantizeQ6_K,
  IQ4_NL: dequantizeIQ4_NL,
  IQ4_XS: dequantizeIQ4_XS,
};

/** Unblocked types, named alike in both formats. */
const plainTypes = ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"];

/** GGML types that can be read as float32. */
const readableGgmlTypes: readonly string[] = [...plainTypes, ...Object.keys(blockFormats)];

/**
 * Returns a function that converts whole blocks of a GGML type to float32, or undefined for F32.
 * @throws FORMAT_UNSUPPORTED for an unsupported type.
 */
export function getDequantizeFunction(
  type: string,
  name: string,
  path: string,
): ((bytes: Uint8Array<ArrayBuffer>, target: Float32Array) => void) | undefined {
  if (plainTypes.includes(type)) return getWidenFunction(type, name, path);
  if (Object.hasOwn(blockFormats, type)) return blockFormats[type];
  throw new LlamaGymError(
    "FORMAT_UNSUPPORTED",
    `Tensor "${name}" in ${path} is stored as ${type}, which is not supported. Supported: ${readableGgmlTypes.join(", ")}. ` +
      "Download one of these, or requantize the model with llama.cpp's llama-quantize.",
  );
}
