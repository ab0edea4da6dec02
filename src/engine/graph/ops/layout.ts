import {
  addDims,
  broadcastShapes,
  mulDims,
  sameDim,
  sameShape,
  formatShape,
  subDims,
  type Dim,
  type Shape,
} from "../dim.js";
import { LlamaGymError } from "../../../core/errors.js";
import { apply, defineOperation, noGradient, shapeError, type Node } from "../node.js";
import { scalar } from "./leaves.js";
import { sumToShape } from "./reduce.js";

/**
 * Output `index` of an operation with several; its gradient reaches that operation's rule as one of
 * `upstreams`.
 */
export const outputOperation = defineOperation<{ readonly index: number }>({
  name: "output",
  infer: ([x], { index }) => x.outputs[index],
  gradient: noGradient,
  onnx: ({ inputs, attributes: { index } }) => inputs[index],
});

/** Returns output `index` of an operation with several outputs. */
export function output(node: Node, index: number): Node {
  return apply(outputOperation, [node], { index });
}

export const reshapeOperation = defineOperation<{ readonly shape: Shape }>({
  name: "reshape",
  recompute: "alias",
  infer: ([x], { shape }) => {
    if (!sameDim(mulDims(...x.shape), mulDims(...shape)))
      throw new LlamaGymError(
        "SHAPE_MISMATCH",
        `reshape from ${formatShape(x.shape)} to ${formatShape(shape)} changes the number of elements.`,
      );
    return { dtype: x.dtype, shape };
  },
  gradient: ({ inputs: [x], upstream }) => [reshape(upstream, x.shape)],
  onnx: ({ inputs, attributes: { shape }, emitter }) => emitter.reshape(inputs[0], shape),
});

/**
 * x, computed only after another value of the same shape. Orders computations, to free memory in
 * between.
 */
export const computeAfterOperation = defineOperation<object>({
  name: "computeAfter",
  infer: (inputs) => {
    const [x, earlier] = inputs;
    if (!sameShape(x.shape, earlier.shape)) throw shapeError("computeAfter", inputs, "two values of the same shape");
    return { dtype: x.dtype, shape: x.shape };
  },
  gradient: ({ upstream }) => [upstream],
  // A runtime must know the other value before it can read its shape; a reshape copies nothing.
  onnx: ({ inputs: [x, earlier], emitter }) => emitter.emit("Reshape", [x, emitter.emit("Shape", [earlier])]),
});

export const transposeOperation = defineOperation<{ readonly permutation: readonly number[] }>({
  name: "transpose",
  infer: (inputs, { permutation }) => {
    const [x] = inputs;
    if ([...permutation].sort((a, b) => a - b).some((axis, i) => axis !== i) || permutation.length !== x.shape.length)
      throw shapeError(
        "transpose",
        inputs,
        `a value of rank ${permutation.length} and a permutation of its axes, not [${permutation.join(", ")}]`,
      );
    return { dtype: x.dtype, shape: permutation.map((axis) => x.shape[axis]) };
  },
  gradient: ({ attributes: { permutation }, upstream }) => [
    transpose(
      upstream,
      permutation.map((_, i) => permutation.indexOf(i)),
    ),
  ],
  onnx: ({ inputs, attributes: { permutation }, emitter }) => emitter.emit("Transpose", inputs, { perm: permutation }),
});

/** Broadcasts size-1 and missing leading dimensions. */
export const expandOperation = defineOperation<{ readonly shape: Shape }>({
  name: "expand",
  infer: (inputs, { shape }) => {
    const [x] = inputs;
    if (!sameShape(broadcastShapes(x.shape, shape), shape))
      throw shapeError("expand", inputs, `a value that broadcasts to ${formatShape(shape)}`);
    return { dtype: x.dtype, shape };
  },
  gradient: ({ inputs: [x], upstream }) => [sumToShape(upstream, x.shape)],
  onnx: ({ inputs, attributes: { shape }, emitter }) => emitter.emit("Expand", [inputs[0], emitter.shape(shape)]),
});

export const concatOperation = defineOperation<{ readonly axis: number }>({
  name: "concat",
  infer: (inputs, { axis }) => {
    const [first] = inputs;
    const fits = inputs.every(
      (x) =>
        axis < x.shape.length &&
        x.dtype === first.dtype &&
        x.shape.length === first.shape.length &&
        x.shape.every((dim, i) => i === axis || sameDim(dim, first.shape[i])),
    );
    if (!fits) throw shapeError("concat", inputs, `values of one type whose shapes differ only along axis ${axis}`);
    return {
      dtype: first.dtype,
      shape: first.shape.map((dim, i) => (i === axis ? addDims(...inputs.map((x) => x.shape[axis])) : dim)),
    };
  },
  gradient: ({ inputs, attributes: { axis }, upstream }) => {
    let start: Dim = 0;
    return inputs.map((x) => {
      const piece = slice(upstream, axis, start, x.shape[axis]);
      start = addDims(start, x.shape[axis]);
      return piece;
    });
  },
  onnx: ({ inputs, attributes: { axis }, emitter }) => emitter.emit("Concat", inputs, { axis }),
});

export interface SliceAttributes {
  readonly axis: number;
  readonly start: Dim;
  readonly length: Dim;
}

export const sliceOperation = defineOperation<SliceAttributes>({
  name: "slice",
  infer: (inputs, { axis, start, length }) => {
    const [x] = inputs;
    // Checked only when all three are static; symbolic bounds are the caller's responsibility.
    const areStatic = [x.shape[axis], start, length].every((dim) => typeof dim === "number");
    const [size, from, count] = [x.shape[axis], start, length] as number[];
    if (axis >= x.shape.length || (areStatic && (from < 0 || count < 0 || from + count > size)))
      throw shapeError(
        "slice",
        inputs,
        `a value with elements ${start.toString()} + ${length.toString()} along axis ${axis}`,
      );
    return { dtype: x.dtype, shape: x.shape.map((dim, i) => (i === axis ? length : dim)) };
  },
  gradient: ({ inputs: [x], attributes: { axis, start, length }, upstream }) => [
    pad(upstream, axis, start, subDims(x.shape[axis], addDims(start, length))),
  ],
  onnx: ({ inputs, attributes: { axis, start, length }, emitter }) => emitter.slice(inputs[0], axis, start, length),
});

export interface PadAttributes {
  readonly axis: number;
  readonly before: Dim;
  readonly after: Dim;
}

/** Pads with zeros along one axis. */
export const padOperation = defineOperation<PadAttributes>({
  name: "pad",
  infer: (inputs, { axis, before, after }) => {
    const [x] = inputs;
    if (axis >= x.shape.length || [before, after].some((count) => typeof count === "number" && count < 0))
      throw shapeError("pad", inputs, `a value with axis ${axis} and non-negative padding`);
    return { dtype: x.dtype, shape: x.shape.map((dim, i) => (i === axis ? addDims(before, dim, after) : dim)) };
  },
  gradient: ({ inputs: [x], attributes: { axis, before }, upstream }) => [slice(upstream, axis, before, x.shape[axis])],
  onnx: ({ node, inputs, attributes: { axis, before, after }, emitter }) => {
    // Concat, as ONNX Runtime's Pad rejects empty dimensions.
    const zerosLike = (length: Dim) =>
      emitter.zeros(
        node.dtype,
        node.shape.map((dim, i) => (i === axis ? length : dim)),
      );
    const parts = [...(before === 0 ? [] : [zerosLike(before)]), inputs[0], ...(after === 0 ? [] : [zerosLike(after)])];
    return emitter.emit("Concat", parts, { axis });
  },
});

/** Splits along an axis into parts of given lengths, one output each. */
export const splitOperation = defineOperation<{ readonly axis: number; readonly lengths: readonly Dim[] }>({
  name: "split",
  infer: (inputs, { axis, lengths }) => {
    const [x] = inputs;
    if (axis >= x.shape.length || !sameDim(addDims(...lengths), x.shape[axis]))
      throw shapeError("split", inputs, `lengths that add up along axis ${axis}`);
    return lengths.map((length) => ({ dtype: x.dtype, shape: x.shape.map((dim, i) => (i === axis ? length : dim)) }));
  },
  gradient: ({ node, attributes: { axis }, upstreams }) => [
    concat(
      node.outputs.map(({ shape }, i) => upstreams[i] ?? expand(scalar(0), shape)),
      axis,
    ),
  ],
  onnx: ({ inputs, attributes: { axis, lengths }, emitter }) =>
    emitter.emitAll("Split", [inputs[0], emitter.shape(lengths)], lengths.length, { axis }),
});

/** Returns x, which is computed only after another value of the same shape. */
export function computeAfter(x: Node, earlier: Node): Node {
  return apply(computeAfterOperation, [x, earlier], {});
}

/** Reshapes x; the elements keep their order. */
export function reshape(x: Node, shape: Shape): Node {
  return sameShape(x.shape, shape) ? x : apply(reshapeOperation, [x], { shape });
}

/** Permutes axes: axis i of the result is axis permutation[i] of x. */
export function transpose(x: Node, permutation: readonly number[]): Node {
  return permutation.every((axis, i) => axis === i) ? x : apply(transposeOperation, [x], { permutation });
}

/** Broadcasts to a shape. */
export function expand(x: Node, shape: Shape): Node {
  return sameShape(x.shape, shape) ? x : apply(expandOperation, [x], { shape });
}

/** Concatenates along an axis. */
export function concat(values: readonly Node[], axis: number): Node {
  const positiveAxis = axis < 0 ? axis + values[0].shape.length : axis;
  return values.length === 1 ? values[0] : apply(concatOperation, values, { axis: positiveAxis });
}

/** Returns x[..., start : start + length, ...] along an axis. */
export function slice(x: Node, axis: number, start: Dim, length: Dim): Node {
  const positiveAxis = axis < 0 ? axis + x.shape.length : axis;
  return start === 0 && sameDim(length, x.shape[positiveAxis])
    ? x
    : apply(sliceOperation, [x], { axis: positiveAxis, start, length });
}

/** Splits x into consecutive parts whose lengths add up to the axis. */
export function split(x: Node, axis: number, lengths: readonly Dim[]): Node[] {
  if (lengths.length === 1) return [x];
  const parts = apply(splitOperation, [x], { axis: axis < 0 ? axis + x.shape.length : axis, lengths });
  return lengths.map((_, i) => output(parts, i));
}

/** Pads with a constant. */
export function pad(x: Node, axis: number, before: Dim, after: Dim): Node {
  return before === 0 && after === 0 ? x : apply(padOperation, [x], { axis, before, after });
}
