import { countElements } from "../../core/numbers.js";
import { LlamaGymError } from "../../core/errors.js";
import { byteLength, dtypes, type DType, type TypedArray } from "./dtype.js";

/** A dense, row-major typed array with a shape. */
export interface Tensor<D extends DType = DType> {
  readonly dtype: D;
  readonly shape: readonly number[];
  readonly data: D extends "float32" ? Float32Array : D extends "int32" ? Int32Array : TypedArray;
}

export type FloatTensor = Tensor<"float32">;

/** Creates a tensor from data and a shape. @throws SHAPE_MISMATCH when the lengths differ. */
export function tensor<D extends DType>(dtype: D, shape: readonly number[], data: Tensor<D>["data"]): Tensor<D> {
  const expected = dtypes[dtype].bytes < 1 ? byteLength(dtype, countElements(shape)) : countElements(shape);
  if (data.length !== expected)
    throw new LlamaGymError(
      "SHAPE_MISMATCH",
      `A ${dtype} tensor of shape [${shape.join(", ")}] needs ${expected} elements, got ${data.length}.`,
    );
  return { dtype, shape, data };
}

/** Creates a tensor of zeros. */
export function zeros<D extends DType>(dtype: D, shape: readonly number[]): Tensor<D> {
  const count = countElements(shape);
  const { arrayType, bytes } = dtypes[dtype];
  const length = bytes < 1 ? byteLength(dtype, count) : count;
  const data = new arrayType(new ArrayBuffer(byteLength(dtype, count)), 0, length);
  return { dtype, shape, data: data as Tensor<D>["data"] };
}

/** Creates a float32 tensor from numbers. */
export function float32(values: readonly number[], shape: readonly number[] = [values.length]): FloatTensor {
  return tensor("float32", shape, Float32Array.from(values));
}

/** Makes an int32 tensor. */
export function int32(values: readonly number[], shape: readonly number[] = [values.length]): Tensor<"int32"> {
  return tensor("int32", shape, Int32Array.from(values));
}
