import type { DType, TypedArray } from "../../tensor/dtype.js";
import { apply, defineOperation, noGradient, type Node } from "../node.js";
import type { Dim, Shape } from "../dim.js";

export interface ConstantAttributes {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: TypedArray;
}

/** A small value stored in the graph. */
export const constantOperation = defineOperation<ConstantAttributes>({
  name: "constant",
  infer: (_, { dtype, shape }) => ({ dtype, shape }),
  gradient: noGradient,
  onnx: ({ attributes: { dtype, shape, data }, emitter }) => emitter.constant(dtype, shape, data),
});

/** Creates a constant, which is stored in the graph. */
export function constant(dtype: DType, shape: readonly number[], data: TypedArray): Node {
  return apply(constantOperation, [], { dtype, shape, data });
}

/** Creates a float32 scalar. */
export function scalar(value: number): Node {
  return constant("float32", [], Float32Array.of(value));
}

/** Creates an int32 scalar. */
export function intScalar(value: number): Node {
  return constant("int32", [], Int32Array.of(value));
}

/** A value fed at each run. */
export const inputOperation = defineOperation<{ readonly name: string; readonly dtype: DType; readonly shape: Shape }>({
  name: "input",
  infer: (_, { dtype, shape }) => ({ dtype, shape }),
  gradient: noGradient,
  onnx: ({ attributes: { name } }) => name,
});

/** Creates a named graph input; its symbolic dimensions take their values from what is fed. */
export function input(name: string, dtype: DType, shape: Shape): Node {
  return apply(inputOperation, [], { name, dtype, shape });
}

/** A frozen value stored outside the graph, in memory or in a file, found by name. */
export const weightOperation = defineOperation<{
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
}>({
  name: "weight",
  infer: (_, { dtype, shape }) => ({ dtype, shape }),
  gradient: noGradient,
  onnx: ({ attributes: { name } }) => name,
});

/** Creates a frozen weight, which is stored outside the graph under its name. */
export function weight(name: string, dtype: DType, shape: readonly number[]): Node {
  return apply(weightOperation, [], { name, dtype, shape });
}

/** A dimension as a float32 scalar, for means over sizes known only at run time. */
export const dimValueOperation = defineOperation<{ readonly dim: Dim }>({
  name: "dimValue",
  infer: () => ({ dtype: "float32", shape: [] }),
  gradient: noGradient,
  onnx: ({ attributes: { dim }, emitter }) => (typeof dim === "number" ? emitter.float(dim) : emitter.floatDim(dim)),
});

/** Returns a dimension as a float32 scalar. */
export function dimValue(dim: Dim): Node {
  return typeof dim === "number" ? scalar(dim) : apply(dimValueOperation, [], { dim });
}
