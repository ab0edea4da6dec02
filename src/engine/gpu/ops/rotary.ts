import type { RotaryAttributes } from "../../graph/ops/rotary.js";
import type { DropoutAttributes } from "../../graph/ops/dropout.js";
import { contiguousStrides, indexed } from "../expression.js";
import type { GpuForm } from "./form.js";

/** Rotates the first half of the rotated dimensions of each head against the second. */
export const rotary: GpuForm<RotaryAttributes> = ({
  program,
  node,
  inputs: [input, cos, sin],
  attributes: { heads },
}) => {
  const x = program.view(input);
  const headDim = (node.shape[1] as number) / heads;
  const half = cos.shape[1] as number;
  return indexed(node, [x, cos, sin], ([from, cosines, sines], [token, column], context) => {
    const within = context.assign("u32", `${column} % ${headDim}u`);
    const frequency = [token, context.assign("u32", `${within} % ${half}u`)];
    const isFirst = `${within} < ${half}u`;
    const other = context.assign("u32", `select(${column} - ${half}u, ${column} + ${half}u, ${isFirst})`);
    const [own, turned] = [
      [token, column],
      [token, other],
    ].map((at) => context.evaluate(from, at));
    const [c, s] = [cosines, sines].map((table) => context.evaluate(table, frequency));
    return `select(${own}, ${own} * ${c} + select(${turned}, -${turned}, ${isFirst}) * ${s}, ${within} < ${2 * half}u)`;
  });
};

/** Multiplies by a mask that repeats over the elements. */
export const dropout: GpuForm<DropoutAttributes> = ({ node, inputs, attributes: { offset } }) =>
  indexed(node, inputs, ([x, mask], coordinates, context) => {
    const terms = contiguousStrides(x.shape).map((stride, axis) => `${coordinates[axis]} * ${context.dim(stride)}`);
    const position = context.assign("u32", `(${[...terms, `${offset}u`].join(" + ")}) % ${context.dim(mask.shape[0])}`);
    return `${context.evaluate(x, coordinates)} * ${context.evaluate(mask, [position])}`;
  });
