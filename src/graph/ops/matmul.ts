import { broadcastShapes, mulDims, sameDim, sameShape, type Dim, type Shape } from "../dim.js";
import { MICROSOFT, type Emitter } from "../emitter.js";
import { apply, shapeError, type Node, type Operation } from "../node.js";
import { sumTo } from "./reduce.js";

export interface MatmulAttributes {
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly alpha: number;
}

/** [rows, inner] and [inner, columns] as the product sees them. */
function matrices(
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

/** alpha * op(a) op(b) over broadcast leading dimensions. */
export const matmulOperation: Operation<MatmulAttributes> = {
  name: "matmul",
  shape: (inputs, attributes) => {
    const [a, b] = inputs;
    if (a.shape.length < 2 || b.shape.length < 2 || a.dtype !== b.dtype)
      throw shapeError("matmul", inputs, "two values of one element type and at least two dimensions");
    const { rows, innerA, innerB, columns } = matrices(a.shape, b.shape, attributes);
    if (!sameDim(innerA, innerB)) throw shapeError("matmul", inputs, "matrices whose inner dimensions agree");
    return { dtype: a.dtype, shape: [...broadcastShapes(a.shape.slice(0, -2), b.shape.slice(0, -2)), rows, columns] };
  },
  gradient: ({ inputs: [a, b], attributes: { transposeA, transposeB, alpha }, upstream: g }) => {
    const da = transposeA
      ? matmul(b, g, { transposeA: transposeB, transposeB: true, alpha })
      : matmul(g, b, { transposeB: !transposeB, alpha });
    const db = transposeB
      ? matmul(g, a, { transposeA: true, transposeB: transposeA, alpha })
      : matmul(a, g, { transposeA: !transposeA, alpha });
    return [sumTo(da, a.shape), sumTo(db, b.shape)];
  },
  onnx: ({ node, inputs, attributes, emitter }) => {
    const [a, b] = node.inputs;
    const { innerA: inner } = matrices(a.shape, b.shape, attributes);
    const mayBeEmpty = typeof inner !== "number" || inner === 0;
    // A plain matrix on the right takes the batch of the left as rows already.
    const oneMatrix = b.shape.length === 2 && (a.shape.length === 2 || !attributes.transposeA);
    if (!mayBeEmpty || oneMatrix) {
      const result = product(inputs, attributes, emitter);
      // An empty result of stretched factors comes out in the shape of the unstretched one.
      const stretched = !sameShape(a.shape.slice(0, -2), b.shape.slice(0, -2));
      return stretched && !oneMatrix ? emitter.reshape(result, node.shape) : result;
    }
    const flat = whenEmpty(node, inner, emitter);
    return emitter.reshape(product([flat.a(inputs[0]), flat.b(inputs[1])], attributes, emitter), node.shape);
  },
};

function product(
  inputs: readonly string[],
  { transposeA, transposeB, alpha }: MatmulAttributes,
  emitter: Emitter,
): string {
  if (!transposeA && !transposeB && alpha === 1) return emitter.emit("MatMul", inputs);
  return emitter.emit("FusedMatMul", inputs, {
    domain: MICROSOFT,
    attributes: { transA: transposeA ? 1 : 0, transB: transposeB ? 1 : 0, alpha: { float: alpha } },
  });
}

/**
 * ONNX Runtime clears only the first matrix of a batch when the inner dimension turns out to be 0, and leaves the others
 * as they were in memory. So an empty product is done as one matrix, with the batch in its rows: reshapes that cost nothing.
 */
function whenEmpty(
  { inputs: [a, b], attributes, shape }: Node<MatmulAttributes>,
  inner: Dim,
  emitter: Emitter,
): { a: (value: string) => string; b: (value: string) => string } {
  const { transposeA, transposeB } = attributes;
  const { rows, columns } = matrices(a.shape, b.shape, attributes);
  const filled = emitter.once(`filled ${inner.toString()}`, () =>
    emitter.emit("Min", [emitter.dim(inner), emitter.ints([1])]),
  );
  const empty = emitter.once(`empty ${inner.toString()}`, () => emitter.emit("Sub", [emitter.ints([1]), filled]));
  const either = (dim: Dim, other: Dim) =>
    sameDim(dim, other)
      ? emitter.dim(dim)
      : emitter.once(`${dim.toString()} if filled by ${inner.toString()} else ${other.toString()}`, () =>
          emitter.emit("Add", [
            emitter.emit("Mul", [filled, emitter.dim(dim)]),
            emitter.emit("Mul", [empty, emitter.dim(other)]),
          ]),
        );
  const reshapeTo = (lead: Shape, matrix: readonly string[]) => (value: string) =>
    emitter.emit(
      "Reshape",
      [value, emitter.emit("Concat", [...lead.map((dim) => either(dim, 1)), ...matrix], { attributes: { axis: 0 } })],
      { attributes: { allowzero: 1 } },
    );
  const allRows = either(rows, mulDims(...shape.slice(0, -1)));
  const innerName = emitter.dim(inner);
  const columnsName = emitter.dim(columns);
  return {
    a: reshapeTo(a.shape.slice(0, -2), transposeA ? [innerName, allRows] : [allRows, innerName]),
    b: reshapeTo(b.shape.slice(0, -2), transposeB ? [columnsName, innerName] : [innerName, columnsName]),
  };
}

/** c + alpha * op(a) op(b) for matrices, in one kernel; c has the product's shape. */
export const addMatmulOperation: Operation<MatmulAttributes> = {
  name: "addMatmul",
  shape: (inputs, attributes) => {
    const [c, a, b] = inputs;
    const { rows, innerA, innerB, columns } = matrices(a.shape, b.shape, attributes);
    const fits =
      [a, b, c].every((x) => x.shape.length === 2 && x.dtype === c.dtype) &&
      sameDim(innerA, innerB) &&
      sameDim(c.shape[0], rows) &&
      sameDim(c.shape[1], columns);
    if (!fits) throw shapeError("addMatmul", inputs, "a matrix and two factors of its shape");
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
    emitter.emit("Gemm", [a, b, c], {
      attributes: { transA: transposeA ? 1 : 0, transB: transposeB ? 1 : 0, alpha: { float: alpha } },
    }),
};

/** alpha * op(a) op(b); leading dimensions broadcast. [..., m, k] x [..., k, n] gives [..., m, n]. */
export function matmul(
  a: Node,
  b: Node,
  { transposeA = false, transposeB = false, alpha = 1 }: Partial<MatmulAttributes> = {},
): Node<MatmulAttributes> {
  return apply(matmulOperation, [a, b], { transposeA, transposeB, alpha });
}

/** c + alpha * op(a) op(b), all matrices. */
export function addMatmul(
  c: Node,
  a: Node,
  b: Node,
  { transposeA = false, transposeB = false, alpha = 1 }: Partial<MatmulAttributes> = {},
): Node {
  return apply(addMatmulOperation, [c, a, b], { transposeA, transposeB, alpha });
}
