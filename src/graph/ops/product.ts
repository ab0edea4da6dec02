import { mayBeEmpty, mulDims, sameDim, sameShape, type Dim, type Shape } from "../dim.js";
import { MICROSOFT, type Emitter } from "../emitter.js";
import type { Node } from "../node.js";
import type { MatmulAttributes } from "./matmul.js";
import { whenFilled } from "./when-filled.js";

export interface ProductContext {
  readonly node: Node<MatmulAttributes>;
  /** Names of the factors. */
  readonly inputs: readonly string[];
  /** The dimension that is summed over. */
  readonly inner: Dim;
  readonly emitter: Emitter;
}

/**
 * The ONNX form of a matrix product. A dimension with a name may turn out to be 0 (no shared prefix, an empty cache), which
 * the runtime's kernels do not all bear: see the two forms.
 */
export function emitProduct(context: ProductContext): string {
  const { node, inner, emitter } = context;
  if (inner === 0) return emitter.zeros(node.dtype, node.shape);
  const [a, b] = node.inputs.map(({ shape }) => shape.slice(0, -2));
  // An empty result of stretched factors comes out in the shape of the unstretched one.
  const shaped = (value: string) => (sameShape(a, b) ? value : emitter.reshape(value, node.shape));
  if (emitter.device === "webgpu") return shaped(onWebgpu(context));
  // A plain matrix on the right takes the batch of the left as rows.
  const oneMatrix = b.length === 0 && (a.length === 0 || !node.attributes.transposeA);
  if (oneMatrix) return onProcessor(context);
  return !mayBeEmpty(inner) ? shaped(onProcessor(context)) : onProcessorFlat(context);
}

/** Also for cuda: FusedMatMul reads factors transposed and scales, at no cost. */
function onProcessor({ node, inputs, emitter }: ProductContext): string {
  const { transposeA, transposeB, alpha } = node.attributes;
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
function onProcessorFlat({ node, inputs, inner, emitter }: ProductContext): string {
  const { shape, attributes } = node;
  const { transposeA, transposeB } = attributes;
  const [a, b] = node.inputs;
  const [rows, columns] = shape.slice(-2);
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
  const reshape = (value: string, lead: Shape, matrix: readonly string[]) => {
    const sizes = [...lead.map((dim) => either(dim, 1)), ...matrix];
    const target = emitter.once(`sizes ${sizes.join()}`, () =>
      emitter.emit("Concat", sizes, { attributes: { axis: 0 } }),
    );
    return emitter.emit("Reshape", [value, target], { attributes: { allowzero: 1 } });
  };
  const allRows = either(rows, mulDims(...shape.slice(0, -1)));
  const innerName = emitter.dim(inner);
  const columnsName = emitter.dim(columns);
  const left = reshape(inputs[0], a.shape.slice(0, -2), transposeA ? [innerName, allRows] : [allRows, innerName]);
  const right = reshape(
    inputs[1],
    b.shape.slice(0, -2),
    transposeB ? [columnsName, innerName] : [innerName, columnsName],
  );
  return emitter.reshape(onProcessor({ node, inputs: [left, right], inner, emitter }), shape);
}

/**
 * WebGPU has no FusedMatMul (it would run on the processor, with the factors copied there and back), and its MatMul brings
 * the process down when there is nothing to sum over.
 */
function onWebgpu({ node, inputs, inner, emitter }: ProductContext): string {
  const { transposeA, transposeB, alpha } = node.attributes;
  const plain = !transposeA && !transposeB && alpha === 1;
  if (node.inputs.every(({ shape }) => shape.length === 2) && (mayBeEmpty(inner) || !plain)) {
    return emitter.emit("Gemm", inputs, {
      attributes: { transA: transposeA ? 1 : 0, transB: transposeB ? 1 : 0, alpha: { float: alpha } },
    });
  }
  return whenFilled([inner], node, emitter, (into) => {
    const [left, right] = node.inputs.map(({ shape }, i) =>
      [transposeA, transposeB][i] ? transposeLast(inputs[i], shape.length, into) : inputs[i],
    );
    const result = into.emit("MatMul", [left, right]);
    return alpha === 1 ? result : into.emit("Mul", [result, into.float(alpha)]);
  });
}

function transposeLast(value: string, rank: number, emitter: Emitter): string {
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  return emitter.emit("Transpose", [value], {
    attributes: { perm: [...axes.slice(0, -2), rank - 1, rank - 2] },
  });
}
