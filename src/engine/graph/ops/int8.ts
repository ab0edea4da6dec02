import { sameDim } from "../dim.js";
import { MS_DOMAIN } from "../emitter.js";
import { apply, noGradient, shapeError, type Node, type Operation } from "../node.js";
import { transpose } from "./layout.js";
import { matmul } from "./matmul.js";

/** The largest code: symmetric, so that zero is exact. */
const MAX_CODE = 127;

/** Keeps rows and columns of zeros from dividing by zero. */
const MIN_ABS_MAX = 1e-30;

/**
 * a [rows, inner] times b [inner, columns], both rounded to 8 bits: a with a scale for each row, b with one for each column. b is
 * frozen, and rounded once, when the session is made: of constant codes only, the runtime makes products that never saturate. An
 * approximation, for gradients that need no more.
 */
export const int8MatmulOperation: Operation<object> = {
  name: "int8Matmul",
  shape: (inputs) => {
    const [a, b] = inputs;
    if (a.shape.length !== 2 || b.shape.length !== 2 || !sameDim(a.shape[1], b.shape[0])) {
      throw shapeError("int8Matmul", inputs, "matrices whose inner dimensions agree");
    }
    return { dtype: a.dtype, shape: [a.shape[0], b.shape[1]] };
  },
  gradient: noGradient,
  onnx: ({ inputs: [a, b], emitter }) => {
    const absMax = (x: string, axis: number) => {
      const largest = emitter.emit("ReduceMax", [emitter.emit("Abs", [x]), emitter.ints([axis])], {
        attributes: { keepdims: 1 },
      });
      return emitter.emit("Max", [largest, emitter.float(MIN_ABS_MAX)]);
    };
    const columnScale = emitter.emit("Div", [absMax(b, 0), emitter.float(MAX_CODE)]);
    const codes = emitter.emit("Cast", [emitter.emit("Round", [emitter.emit("Div", [b, columnScale])])], {
      attributes: { to: 3 },
    });
    const rowScale = absMax(a, 1);
    const scales = emitter.emit("Squeeze", [columnScale, emitter.ints([0])]);
    const product = emitter.emit("DynamicQuantizeMatMul", [emitter.emit("Div", [a, rowScale]), codes, scales], {
      domain: MS_DOMAIN,
    });
    return emitter.emit("Mul", [product, rowScale]);
  },
};

export interface Int8GradientAttributes {
  /** The weight is stored [out, in], else [in, out]. */
  readonly transposeB: boolean;
}

/** x [rows, in] through a frozen weight, exact; its gradient to x is computed in 8 bits. */
export const int8GradientMatmulOperation: Operation<Int8GradientAttributes> = {
  name: "int8GradientMatmul",
  shape: ([x, weight], attributes) => matmul(x, weight, attributes),
  gradient: ({ inputs: [, weight], attributes: { transposeB }, upstream }) => [
    int8Matmul(upstream, transposeB ? weight : transpose(weight, [1, 0])),
    undefined,
  ],
  onnx: ({ inputs, attributes: { transposeB }, emitter }) =>
    emitter.emit("FusedMatMul", inputs, { domain: MS_DOMAIN, attributes: { transB: transposeB ? 1 : 0 } }),
};

/** a [rows, inner] times b [inner, columns], which is frozen, both rounded to 8 bits. */
export function int8Matmul(a: Node, b: Node): Node {
  return apply(int8MatmulOperation, [a, b], {});
}

/** x [rows, in] through a frozen weight, with a gradient rounded to 8 bits. */
export function int8GradientMatmul(x: Node, weight: Node, attributes: Int8GradientAttributes): Node {
  return apply(int8GradientMatmulOperation, [x, weight], attributes);
}
