import { sameDim } from "../dim.js";
import { apply, defineOperation, noGradient, shapeError, type Node } from "../node.js";
import { transpose } from "./layout.js";
import { matmul } from "./matmul.js";

/** Largest code. The range is symmetric, so that 0 is exact. */
const MAX_CODE = 127;

/** Avoids division by zero for all-zero rows and columns. */
const MIN_ABS_MAX = 1e-30;

/**
 * a [rows, inner] times b [inner, columns], both rounded to 8 bits: a with a scale per row, b with a scale per column.
 * b must be frozen: it is rounded once, at session creation, and ONNX Runtime's products with constant codes do not
 * saturate. An approximation for gradients.
 */
export const int8MatmulOperation = defineOperation<object>({
  name: "int8Matmul",
  infer: (inputs) => {
    const [a, b] = inputs;
    if (a.shape.length !== 2 || b.shape.length !== 2 || !sameDim(a.shape[1], b.shape[0]))
      throw shapeError("int8Matmul", inputs, "matrices with equal inner dimensions");
    return { dtype: a.dtype, shape: [a.shape[0], b.shape[1]] };
  },
  gradient: noGradient,
  onnx: ({ inputs: [a, b], emitter }) => {
    const absMax = (x: string, axis: number) => {
      const largest = emitter.emit("ReduceMax", [emitter.emit("Abs", [x]), emitter.ints([axis])], { keepdims: 1 });
      return emitter.emit("Max", [largest, emitter.float(MIN_ABS_MAX)]);
    };
    const columnScale = emitter.emit("Div", [absMax(b, 0), emitter.float(MAX_CODE)]);
    const codes = emitter.emit("Cast", [emitter.emit("Round", [emitter.emit("Div", [b, columnScale])])], { to: 3 });
    const rowScale = absMax(a, 1);
    const scales = emitter.emit("Squeeze", [columnScale, emitter.ints([0])]);
    const product = emitter.emit("DynamicQuantizeMatMul", [emitter.emit("Div", [a, rowScale]), codes, scales]);
    return emitter.emit("Mul", [product, rowScale]);
  },
});

export interface Int8GradientAttributes {
  /** Whether the weight is stored [out, in] rather than [in, out]. */
  readonly transposeB: boolean;
}

/** Multiplies x [rows, in] by a frozen weight exactly; the gradient with respect to x is computed in 8 bits. */
export const int8GradientMatmulOperation = defineOperation<Int8GradientAttributes>({
  name: "int8GradientMatmul",
  infer: ([x, weight], attributes) => matmul(x, weight, attributes),
  gradient: ({ inputs: [, weight], attributes: { transposeB }, upstream }) => [
    int8Matmul(upstream, transposeB ? weight : transpose(weight, [1, 0])),
    undefined,
  ],
  onnx: ({ inputs, attributes: { transposeB }, emitter }) =>
    emitter.emit("FusedMatMul", inputs, { transB: transposeB }),
});

/** Multiplies a [rows, inner] by a frozen b [inner, columns], both rounded to 8 bits. */
export function int8Matmul(a: Node, b: Node): Node {
  return apply(int8MatmulOperation, [a, b], {});
}

/** Multiplies x [rows, in] by a frozen weight, with a gradient rounded to 8 bits. */
export function int8GradientMatmul(x: Node, weight: Node, attributes: Int8GradientAttributes): Node {
  return apply(int8GradientMatmulOperation, [x, weight], attributes);
}
