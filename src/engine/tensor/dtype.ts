/** Element types of tensors, by ONNX Runtime's names. */
export type DType =
  | "float32"
  | "float16"
  | "bfloat16"
  | "int64"
  | "int32"
  | "int8"
  | "uint8"
  | "int4"
  | "uint4"
  | "bool";

export type TypedArray = Float32Array | Uint16Array | BigInt64Array | Int32Array | Int8Array | Uint8Array;

interface DTypeInfo {
  /** Bytes per element: 0.5 for 4-bit types, which are packed two per byte. */
  readonly bytes: number;
  /** TensorProto.DataType in ONNX. */
  readonly onnx: number;
  readonly arrayType: new (buffer: ArrayBufferLike, byteOffset: number, length: number) => TypedArray;
}

export const dtypes: { readonly [K in DType]: DTypeInfo } = {
  float32: { bytes: 4, onnx: 1, arrayType: Float32Array },
  uint8: { bytes: 1, onnx: 2, arrayType: Uint8Array },
  int8: { bytes: 1, onnx: 3, arrayType: Int8Array },
  int32: { bytes: 4, onnx: 6, arrayType: Int32Array },
  int64: { bytes: 8, onnx: 7, arrayType: BigInt64Array },
  bool: { bytes: 1, onnx: 9, arrayType: Uint8Array },
  float16: { bytes: 2, onnx: 10, arrayType: Uint16Array },
  bfloat16: { bytes: 2, onnx: 16, arrayType: Uint16Array },
  uint4: { bytes: 0.5, onnx: 21, arrayType: Uint8Array },
  int4: { bytes: 0.5, onnx: 22, arrayType: Uint8Array },
};

/** Returns the bytes of `count` elements, rounded up. */
export function byteLength(dtype: DType, count: number): number {
  return Math.ceil(dtypes[dtype].bytes * count);
}
