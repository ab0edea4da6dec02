import type { MatmulAttributes } from "../../graph/ops/matmul.js";
import type { BlockAttributes, QuantizedMatmulAttributes } from "../../graph/ops/quantized.js";
import { invalidArgument } from "../../../core/errors.js";
import { indexed, type Expression, type PendingProduct } from "../expression.js";
import type { ProgramBuilder } from "../program-builder.js";
import type { GpuForm } from "./form.js";

function multiply(
  program: ProgramBuilder,
  { dtype, shape }: Pick<Expression, "dtype" | "shape">,
  [left, right]: readonly Expression[],
  { transposeA, transposeB, alpha }: MatmulAttributes,
): Extract<Expression, { kind: "product" }> {
  const [a, b] = [left, right].map((x) => {
    const { view } = program.view(x);
    return { view, shape: x.shape };
  });
  const inner = a.shape.at(transposeA ? -2 : -1)!;
  return { kind: "product", dtype, shape, product: { a, b, transposeA, transposeB, alpha, inner } };
}

const matmul: GpuForm<MatmulAttributes> = ({ program, node, inputs, attributes }) =>
  multiply(program, node, inputs, attributes);

const addMatmul: GpuForm<MatmulAttributes> = ({ program, node, inputs: [c, a, b], attributes }) => ({
  kind: "call",
  dtype: node.dtype,
  shape: node.shape,
  args: [c, multiply(program, node, [a, b], attributes)],
  write: ([left, right]) => `${left} + ${right}`,
});

const dequantize: GpuForm<BlockAttributes> = ({ node, inputs, attributes: { blockSize } }) =>
  indexed(node, inputs, ([codes, scales, zeroPoints], [row, column], context) => {
    const block = [row, context.assign("u32", `${column} / ${blockSize}u`)];
    const [code, zero] = [context.evaluate(codes, [row, column]), context.evaluate(zeroPoints, block)];
    return `f32(${code} - ${zero}) * ${context.evaluate(scales, block)}`;
  });

const quantizedMatmul: GpuForm<QuantizedMatmulAttributes> = ({
  program,
  node,
  inputs: [x, bytes, scales],
  attributes: { bits, blockSize },
}) => {
  const a = { view: program.view(x).view, shape: x.shape };
  const { view } = program.view(bytes);
  const [rows, width] = [node.shape[1], x.shape[1]];
  const codes = { ...view, format: bits === 4 ? ("u4" as const) : view.format, strides: [width, 1] };
  const blocks = { scales: program.view(scales).view, blockSize, middle: bits === 4 ? 8 : 128 };
  const product: PendingProduct = {
    a,
    b: { view: codes, shape: [rows, width], blocks },
    transposeA: false,
    transposeB: true,
    alpha: 1,
    inner: width,
  };
  return { kind: "product", dtype: node.dtype, shape: node.shape, product };
};

/** Products of whole numbers are for processors. */
const unavailable: GpuForm<never> = ({ node }) => {
  throw invalidArgument(`The operation ${node.operation.name} is for the processor and has no form for the GPU.`);
};

export const productForms = {
  matmul,
  addMatmul,
  dequantize,
  quantizedMatmul,
  int8Matmul: unavailable,
  int8GradientMatmul: unavailable,
  int8WeightMatmul: unavailable,
};
