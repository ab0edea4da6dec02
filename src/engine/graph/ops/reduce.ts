import { mulDims, sameShape, type Dim, type Shape } from "../dim.js";
import { apply, defineOperation, noGradient, shapeError, type Node, type Operation } from "../node.js";
import { dimValue } from "./leaves.js";
import { cast, div, equal, mul } from "./elementwise.js";
import { expand, reshape } from "./layout.js";
import { ifNonEmpty } from "./if-non-empty.js";

export interface ReduceAttributes {
  readonly axes: readonly number[];
  readonly keepDims: boolean;
}

function reduceShape(shape: Shape, { axes, keepDims }: ReduceAttributes): Shape {
  return keepDims ? shape.map((dim, i) => (axes.includes(i) ? 1 : dim)) : shape.filter((_, i) => !axes.includes(i));
}

/** Restores the reduced axes with size 1. */
function restoreAxes(value: Node, original: Node, { axes }: ReduceAttributes): Node {
  return reshape(value, reduceShape(original.shape, { axes, keepDims: true }));
}

const defineReduction = (
  name: string,
  onnx: string,
  gradient: Operation<ReduceAttributes>["gradient"],
): Operation<ReduceAttributes> => ({
  name,
  infer: (inputs, attributes) => {
    const [x] = inputs;
    if (attributes.axes.some((axis, i) => axis < 0 || axis >= x.shape.length || axis === attributes.axes[i - 1]))
      throw shapeError(name, inputs, `a value with distinct axes ${attributes.axes.join(", ")}`);
    return { dtype: x.dtype, shape: reduceShape(x.shape, attributes) };
  },
  gradient,
  onnx: ({ node, inputs, attributes: { axes, keepDims }, emitter }) =>
    // ReduceSum accepts empty inputs on every execution provider.
    ifNonEmpty(onnx === "ReduceSum" ? [] : node.inputs[0].shape, node, emitter, (into) =>
      into.emit(onnx, [...inputs, into.ints(axes)], { keepdims: keepDims }),
    ),
});

export const reduceSumOperation = defineReduction("reduceSum", "ReduceSum", ({ inputs: [x], attributes, upstream }) => [
  expand(restoreAxes(upstream, x, attributes), x.shape),
]);

/** Ties for the maximum share the gradient equally. */
export const reduceMaxOperation = defineReduction(
  "reduceMax",
  "ReduceMax",
  ({ inputs: [x], attributes, output, upstream }) => {
    const maxMask = cast(equal(x, restoreAxes(output, x, attributes)), "float32");
    const count = reduceSum(maxMask, attributes.axes, true);
    return [mul(maxMask, div(restoreAxes(upstream, x, attributes), count))];
  },
);

/** Index of the largest element along the last axis (the first of several). */
export const argMaxOperation = defineOperation<object>({
  name: "argMax",
  infer: ([x]) => ({ dtype: "int64", shape: x.shape.slice(0, -1) }),
  gradient: noGradient,
  // Not axis -1: for empty inputs ONNX Runtime ignores a negative axis and returns the input's
  // shape.
  onnx: ({ node, inputs, emitter }) => emitter.emit("ArgMax", inputs, { axis: node.shape.length, keepdims: 0 }),
});

function normalizeAxes(x: Node, axes: readonly number[] | undefined): readonly number[] {
  return (axes ?? x.shape.map((_, i) => i))
    .map((axis) => (axis < 0 ? axis + x.shape.length : axis))
    .sort((a, b) => a - b);
}

/** Sums over the axes (default all). */
export function reduceSum(x: Node, axes?: readonly number[], keepDims = false): Node {
  const list = normalizeAxes(x, axes);
  return list.length === 0 ? x : apply(reduceSumOperation, [x], { axes: list, keepDims });
}

/** Maximum over axes. */
export function reduceMax(x: Node, axes?: readonly number[], keepDims = false): Node {
  const list = normalizeAxes(x, axes);
  return list.length === 0 ? x : apply(reduceMaxOperation, [x], { axes: list, keepDims });
}

/** Averages over the axes (default all). */
export function reduceMean(x: Node, axes?: readonly number[], keepDims = false): Node {
  const list = normalizeAxes(x, axes);
  const count: Dim = mulDims(...list.map((axis) => x.shape[axis]));
  return div(reduceSum(x, list, keepDims), dimValue(count));
}

/** Index of the maximum along an axis. */
export function argMax(x: Node): Node {
  return apply(argMaxOperation, [x], {});
}

/**
 * Sums over the axes along which `shape` was broadcast to x's shape: the gradient of broadcasting.
 */
export function sumToShape(x: Node, shape: Shape): Node {
  if (sameShape(x.shape, shape)) return x;
  const lead = x.shape.length - shape.length;
  const axes = x.shape.flatMap((dim, i) => (i < lead || (shape[i - lead] === 1 && dim !== 1) ? [i] : []));
  return reshape(reduceSum(x, axes, true), shape);
}
