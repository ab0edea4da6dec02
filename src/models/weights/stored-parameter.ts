import { weight, type CodeType, type Int8Weight, type QuantizedWeight } from "../../engine/graph/index.js";
import type { DType } from "../../engine/tensor/index.js";
import { BLOCK_SIZE } from "./quantize.js";

/** A parameter's form in graphs. */
export type StoredParameter =
  | { readonly kind: "frozen"; readonly shape: readonly number[]; readonly dtype?: "float32" | "float16" }
  /** The base model's values of a trained parameter. */
  | { readonly kind: "base"; readonly shape: readonly number[]; readonly of: string }
  | { readonly kind: "trainable"; readonly shape: readonly number[] }
  /** A matrix [out, in] with a scale per block of inputs. */
  | { readonly kind: "quantized"; readonly shape: readonly number[]; readonly bits: 4 | 8 }
  /** A matrix [out, in] of 8-bit codes, stored [in, out], with a scale per output. */
  | { readonly kind: "int8"; readonly shape: readonly number[]; readonly codeType: CodeType }
  /**
   * An output matrix [out, in] rounded to 8-bit codes with a scale per output: int8 codes
   * [out, in], whose rows are looked up, and codes [in, out], which decoding multiplies.
   */
  | { readonly kind: "int8Head"; readonly shape: readonly number[]; readonly codeType: CodeType };

/** Suffixes of the tensors in graphs of a parameter with a scale per block. */
const BLOCK_PARTS = ["bytes", "codes", "scales", "zero_points"] as const;

/** Suffixes of an int8 parameter's tensors in graphs. */
const INT8_PARTS = ["int8", "scales"] as const;

/** Suffixes of an int8 output matrix's tensors in graphs. */
const HEAD_PARTS = [...INT8_PARTS, "int8_transposed"] as const;

export type QuantizedParameter = Extract<StoredParameter, { kind: "quantized" | "int8" | "int8Head" }>;
export type Int8Parameter = Extract<StoredParameter, { kind: "int8" | "int8Head" }>;
export type HeadParameter = Extract<StoredParameter, { kind: "int8Head" }>;
export type BlockParameter = Extract<StoredParameter, { kind: "quantized" }>;

/** Returns the names of a parameter's tensors in graphs. */
export function getPartNames(name: string, { kind }: StoredParameter): string[] {
  const withSuffixes = (suffixes: readonly string[]) => suffixes.map((suffix) => `${name}.${suffix}`);
  switch (kind) {
    case "quantized":
      return withSuffixes(BLOCK_PARTS);
    case "int8":
      return withSuffixes(INT8_PARTS);
    case "int8Head":
      return withSuffixes(HEAD_PARTS);
    default:
      return [name];
  }
}

/** Returns the tensors of a matrix in blocks as weights of a graph. */
export function getQuantizedParts(name: string, { shape: [rows, columns], bits }: BlockParameter): QuantizedWeight {
  const blocks = columns / BLOCK_SIZE;
  const codeType = bits === 4 ? "uint4" : "uint8";
  const createPart = (suffix: (typeof BLOCK_PARTS)[number], dtype: DType, shape: readonly number[]) =>
    weight(`${name}.${suffix}`, dtype, shape);
  return {
    bytes: createPart("bytes", "uint8", [rows, blocks, (BLOCK_SIZE * bits) / 8]),
    codes: createPart("codes", codeType, [rows, columns]),
    scales: createPart("scales", "float32", [rows, blocks]),
    zeroPoints: createPart("zero_points", codeType, [rows, blocks]),
  };
}

/** Returns the codes [in, out] that are multiplied and their scales as weights of a graph. */
export function getInt8Parts(name: string, parameter: Int8Parameter): Required<Int8Weight> {
  const { kind, shape, codeType } = parameter;
  const [codes, scales, transposed] = getPartNames(name, parameter);
  return {
    codes: weight(kind === "int8" ? codes : transposed, codeType, [...shape].reverse()),
    scales: weight(scales, "float32", [shape[0]]),
  };
}

/** Returns the int8 codes [out, in] of an output matrix and their scales as weights of a graph. */
export function getHeadRows(name: string, parameter: HeadParameter): Required<Int8Weight> {
  const { shape } = parameter;
  const [codes, scales] = getPartNames(name, parameter);
  return { codes: weight(codes, "int8", shape), scales: weight(scales, "float32", [shape[0]]) };
}

export function isInt8(
  parameter: StoredParameter | undefined,
): parameter is Extract<StoredParameter, { kind: "int8" }> {
  return parameter?.kind === "int8";
}
