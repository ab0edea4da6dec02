import { broadcastShapes, sameDim, type Dim, type Shape } from "../dim.js";
import { apply, defineOperation, shapeError, type Node } from "../node.js";
import { emitMatmul } from "./emit-matmul.js";
import { sumToShape } from "./reduce.js";

export interface MatmulAttributes {
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly alpha: number;
}

/** Returns the matrix dimensions after transposition. */
function getMatrixDims(
  a: Shape,
  b: Shape,
  { transposeA, transposeB }: MatmulAttributes,
): { rows: Dim; innerA: Dim; innerB: Dim; columns: Dim } {
  const [a0, a1] = a.slice(-2);
  const [b0, b1] = b.slice(-2);
  return {
    rows: transposeA ? a1 : a0,
    innerA: transposeA ? a0 : a1,
    innerB: transposeB ? b1 : b0,
    columns: transposeB ? b0 : b1,
  };
}

/** alpha * op(a) op(b), with broadcast leading dimensions. */
export const matmulOperation = defineOperation<MatmulAttributes>({
  name: "matmul",
  infer: (inputs, attributes) => {
    const [a, b] = inputs;
    if (a.shape.length < 2 || b.shape.length < 2 || a.dtype !== b.dtype)
      throw shapeError("matmul", inputs, "two values of the same element type and rank >= 2");
    const { rows, innerA, innerB, columns } = getMatrixDims(a.shape, b.shape, attributes);
    if (!sameDim(innerA, innerB)) throw shapeError("matmul", inputs, "matrices with equal inner dimensions");
    return { dtype: a.dtype, shape: [...broadcastShapes(a.shape.slice(0, -2), b.shape.slice(0, -2)), rows, columns] };
  },
  gradient: ({ inputs: [a, b], attributes: { transposeA, transposeB, alpha }, upstream: g }) => {
    const da = transposeA
      ? matmul(b, g, { transposeA: transposeB, transposeB: true, alpha })
      : matmul(g, b, { transposeB: !transposeB, alpha });
    const db = transposeB
      ? matmul(g, a, { transposeA: true, transposeB: transposeA, alpha })
      : matmul(a, g, { transposeA: !transposeA, alpha });
    return [sumToShape(da, a.shape), sumToShape(db, b.shape)];
  },
  onnx: ({ node, inputs, attributes, emitter }) => {
    const [a, b] = node.inputs;
    return emitMatmul({ node, inputs, inner: getMatrixDims(a.shape, b.shape, attributes).innerA, emitter });
  },
});

/** c + alpha * op(a) op(b) for matrices, in one kernel; c has the product's shape. */
export const addMatmulOperation = defineOperation<MatmulAttributes>({
  name: "addMatmul",
  infer: (inputs, attributes) => {
    const [c, a, b] = inputs;
    const { rows, innerA, innerB, columns } = getMatrixDims(a.shape, b.shape, attributes);
    const fits =
      [a, b, c].every((x) => x.shape.length === 2 && x.dtype === c.dtype) &&
      sameDim(innerA, innerB) &&
      sameDim(c.shape[0], rows) &&
      sameDim(c.shape[1], columns);
    if (!fits) throw shapeError("addMatmul", inputs, "a matrix and two factors whose product has its shape");
    return { dtype: c.dtype, shape: c.shape };
  },
  gradient: ({ inputs: [, a, b], attributes, upstream }) => {
    const product = matmul(a, b, attributes);
    const [da, db] = matmulOperation.gradient({
      node: product,
      inputs: [a, b],
      attributes,
      output: product,
      upstream,
      upstreams: [upstream],
    });
    return [upstream, da, db];
  },
  onnx: ({ inputs: [c, a, b], attributes: { transposeA, transposeB, alpha }, emitter }) =>
    emitter.emit("Gemm", [a, b, c], { transA: transposeA, transB: transposeB, alpha: { float: alpha } }),
});

/**
 * Returns alpha * op(a) op(b): [..., m, k] x [..., k, n] to [..., m, n] with broadcast leading
 * dimensions.
 */
export function matmul(
  a: Node,
  b: Node,
  { transposeA = false, transposeB = false, alpha = 1 }: Partial<MatmulAttributes> = {},
): Node<MatmulAttributes> {
  return apply(matmulOperation, [a, b], { transposeA, transposeB, alpha });
}

/** Returns c + alpha * op(a) op(b) for matrices. */
export function addMatmul(
  c: Node,
  a: Node,
  b: Node,
  { transposeA = false, transposeB = false, alpha = 1 }: Partial<MatmulAttributes> = {},
): Node {
  return apply(addMatmulOperation, [c, a, b], { transposeA, transposeB, alpha });
}
