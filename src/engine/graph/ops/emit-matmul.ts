import { canBeEmpty, mulDims, sameDim, sameShape, type Dim, type Shape } from "../dim.js";
import type { Emitter } from "../emitter.js";
import type { Node } from "../node.js";
import type { MatmulAttributes } from "./matmul.js";
import { ifNonEmpty } from "./if-non-empty.js";

export interface MatmulContext {
  readonly node: Node<MatmulAttributes>;
  readonly inputs: readonly string[];
  /** The contracted dimension. */
  readonly inner: Dim;
  readonly emitter: Emitter;
}

/**
 * Emits a matrix product. Named dimensions may be 0 at run time (no shared prefix, an empty cache),
 * which not all of ONNX Runtime's kernels support.
 */
export function emitMatmul(context: MatmulContext): string {
  const { node, inner, emitter } = context;
  if (inner === 0) return emitter.zeros(node.dtype, node.shape);
  const [a, b] = node.inputs.map(({ shape }) => shape.slice(0, -2));
  // An empty product of broadcast factors has the shape of the factor that was not broadcast.
  const restoreShape = (value: string) => (sameShape(a, b) ? value : emitter.reshape(value, node.shape));
  if (emitter.device === "webgpu") return restoreShape(emitForWebgpu(context));
  // An unbatched right factor treats the left factor's batch as rows.
  const hasUnbatchedRight = b.length === 0 && (a.length === 0 || !node.attributes.transposeA);
  if (hasUnbatchedRight) return emitForCpu(context);
  return !canBeEmpty(inner) ? restoreShape(emitForCpu(context)) : emitForCpuFlattened(context);
}

/** FusedMatMul transposes and scales for free. */
function emitForCpu({ node, inputs, emitter }: MatmulContext): string {
  const { transposeA, transposeB, alpha } = node.attributes;
  if (!transposeA && !transposeB && alpha === 1) return emitter.emit("MatMul", inputs);
  return emitter.emit("FusedMatMul", inputs, { transA: transposeA, transB: transposeB, alpha: { float: alpha } });
}

/**
 * When the inner dimension is 0, ONNX Runtime zeroes only the first matrix of a batch and leaves
 * the others uninitialized. The batch is therefore moved into the rows of a single matrix by free
 * reshapes.
 */
function emitForCpuFlattened({ node, inputs, inner, emitter }: MatmulContext): string {
  const { shape, attributes } = node;
  const { transposeA, transposeB } = attributes;
  const [a, b] = node.inputs;
  const [rows, columns] = shape.slice(-2);
  const isNonEmpty = emitter.emitOnce(`nonEmpty ${inner.toString()}`, () =>
    emitter.emit("Min", [emitter.dim(inner), emitter.ints([1])]),
  );
  const isEmpty = emitter.emitOnce(`empty ${inner.toString()}`, () =>
    emitter.emit("Sub", [emitter.ints([1]), isNonEmpty]),
  );
  const select = (dim: Dim, other: Dim) =>
    sameDim(dim, other)
      ? emitter.dim(dim)
      : emitter.emitOnce(`${inner.toString()} ? ${dim.toString()} : ${other.toString()}`, () =>
          emitter.emit("Add", [
            emitter.emit("Mul", [isNonEmpty, emitter.dim(dim)]),
            emitter.emit("Mul", [isEmpty, emitter.dim(other)]),
          ]),
        );
  const reshape = (value: string, lead: Shape, matrix: readonly string[]) => {
    const sizes = [...lead.map((dim) => select(dim, 1)), ...matrix];
    const target = emitter.emitOnce(`sizes ${sizes.join()}`, () => emitter.emit("Concat", sizes, { axis: 0 }));
    return emitter.emit("Reshape", [value, target], { allowzero: 1 });
  };
  const allRows = select(rows, mulDims(...shape.slice(0, -1)));
  const innerValue = emitter.dim(inner);
  const columnsValue = emitter.dim(columns);
  const left = reshape(inputs[0], a.shape.slice(0, -2), transposeA ? [innerValue, allRows] : [allRows, innerValue]);
  const right = reshape(
    inputs[1],
    b.shape.slice(0, -2),
    transposeB ? [columnsValue, innerValue] : [innerValue, columnsValue],
  );
  return emitter.reshape(emitForCpu({ node, inputs: [left, right], inner, emitter }), shape);
}

/**
 * WebGPU has no FusedMatMul (ONNX Runtime would fall back to the CPU), and its MatMul crashes the
 * process when the inner dimension is 0.
 */
function emitForWebgpu({ node, inputs, inner, emitter }: MatmulContext): string {
  const { transposeA, transposeB, alpha } = node.attributes;
  const plain = !transposeA && !transposeB && alpha === 1;
  if (node.inputs.every(({ shape }) => shape.length === 2) && (canBeEmpty(inner) || !plain))
    return emitter.emit("Gemm", inputs, { transA: transposeA, transB: transposeB, alpha: { float: alpha } });
  return ifNonEmpty([inner], node, emitter, (into) => {
    const [left, right] = node.inputs.map(({ shape }, i) =>
      [transposeA, transposeB][i] ? transposeLastTwo(inputs[i], shape.length, into) : inputs[i],
    );
    const result = into.emit("MatMul", [left, right]);
    return alpha === 1 ? result : into.emit("Mul", [result, into.float(alpha)]);
  });
}

function transposeLastTwo(value: string, rank: number, emitter: Emitter): string {
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  return emitter.emit("Transpose", [value], { perm: [...axes.slice(0, -2), rank - 1, rank - 2] });
}
