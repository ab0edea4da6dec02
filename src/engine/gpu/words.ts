import type { DType, TypedArray } from "../tensor/dtype.js";

/**
 * Returns data as 32-bit words, as kernels read it: 64-bit integers are narrowed, smaller elements
 * packed.
 */
export function toWords(dtype: DType, data: TypedArray): Uint32Array<ArrayBuffer> {
  if (dtype === "int64")
    return new Uint32Array(Int32Array.from(data as BigInt64Array, (value) => Number(BigInt.asIntN(32, value))).buffer);
  const bytes = new Uint8Array(Math.ceil(data.byteLength / 4) * 4);
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return new Uint32Array(bytes.buffer);
}

/** Returns computed elements, one per word, in a type's own format. */
export function fromWords(dtype: DType, words: Uint32Array): TypedArray {
  switch (dtype) {
    case "float32":
      return new Float32Array(words.buffer, words.byteOffset, words.length);
    case "int64":
      return BigInt64Array.from(new Int32Array(words.buffer, words.byteOffset, words.length), BigInt);
    case "int32":
      return new Int32Array(words.buffer, words.byteOffset, words.length);
    case "bool":
      return Uint8Array.from(words);
    default:
      throw new Error(`kernels compute no ${dtype} values`);
  }
}
