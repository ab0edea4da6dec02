import { addDims, mulDims, type Dim, type Shape } from "../../graph/dim.js";
import type { PadAttributes, SliceAttributes } from "../../graph/ops/layout.js";
import {
  broadcastStrides,
  indexed,
  reshapeExpression,
  wgslType,
  type Expression,
  type ExpressionContext,
} from "../expression.js";
import type { ProgramBuilder } from "../program-builder.js";
import type { GpuForm } from "./form.js";

const reshape: GpuForm<{ readonly shape: Shape }> = ({ inputs: [x], attributes: { shape } }) =>
  reshapeExpression(x, shape);

/** Programs run in the order of their nodes. */
const computeAfter: GpuForm<object> = ({ inputs: [x] }) => x;

const transpose: GpuForm<{ readonly permutation: readonly number[] }> = ({
  program,
  node: { dtype, shape },
  inputs: [x],
  attributes: { permutation },
}) => {
  const { view } = program.view(x);
  return { kind: "view", dtype, shape, view: { ...view, strides: permutation.map((axis) => view.strides[axis]) } };
};

const expand: GpuForm<object> = ({ program, node: { dtype, shape }, inputs: [x] }) => {
  if (x.kind === "literal" || x.kind === "dim") return { ...x, shape };
  const { view } = program.view(x);
  return { kind: "view", dtype, shape, view: { ...view, strides: broadcastStrides(x.shape, view.strides, shape) } };
};

/** Returns part of an expression along an axis. */
function part(program: ProgramBuilder, x: Expression, axis: number, start: Dim, length: Dim): Expression {
  const shape = x.shape.map((dim, i) => (i === axis ? length : dim));
  if (x.kind === "literal" || x.kind === "dim") return { ...x, shape };
  const { view } = program.view(x);
  const offset = addDims(view.offset, mulDims(start, view.strides[axis]));
  return { kind: "view", dtype: x.dtype, shape, view: { ...view, offset } };
}

const slice: GpuForm<SliceAttributes> = ({ program, inputs: [x], attributes: { axis, start, length } }) =>
  part(program, x, axis, start, length);

const split: GpuForm<{ readonly axis: number; readonly lengths: readonly Dim[] }> = ({
  program,
  inputs: [x],
  attributes: { axis, lengths },
}) => {
  const source = program.view(x);
  let start: Dim = 0;
  return lengths.map((length) => {
    const result = part(program, source, axis, start, length);
    start = addDims(start, length);
    return result;
  });
};

function moveAlong(coordinates: readonly string[], axis: number, code: string): string[] {
  return coordinates.map((coordinate, i) => (i === axis ? code : coordinate));
}

const concat: GpuForm<{ readonly axis: number }> = ({ node, inputs, attributes: { axis } }) =>
  indexed(node, inputs, (args, coordinates, context) => writeConcat(args, axis, coordinates, context));

/** Evaluates the argument in which a position along the axis lies. */
function writeConcat(
  args: readonly Expression[],
  axis: number,
  coordinates: readonly string[],
  context: ExpressionContext,
): string {
  let end: Dim = 0;
  const cases = args.map((arg, i) => {
    const start = end;
    end = addDims(end, arg.shape[axis]);
    const when = i === args.length - 1 ? "" : `${coordinates[axis]} < ${context.dim(end)}`;
    const at = start === 0 ? coordinates[axis] : `(${coordinates[axis]} - ${context.dim(start)})`;
    const within = moveAlong(coordinates, axis, arg.shape[axis] === 1 ? "0u" : at);
    return { when, value: () => context.evaluate(arg, within) };
  });
  return context.select(wgslType(args[0].dtype), cases);
}

const pad: GpuForm<PadAttributes> = ({ node: { dtype, shape }, inputs: [x], attributes: { axis, before } }) =>
  indexed({ dtype, shape }, [x], ([arg], coordinates, context) => {
    const start = context.dim(before);
    const end = context.dim(addDims(before, arg.shape[axis]));
    const zero = wgslType(dtype) === "bool" ? "false" : `${wgslType(dtype)}(0)`;
    return context.select(wgslType(dtype), [
      {
        when: `${coordinates[axis]} >= ${start} && ${coordinates[axis]} < ${end}`,
        value: () => context.evaluate(arg, moveAlong(coordinates, axis, `(${coordinates[axis]} - ${start})`)),
      },
      { when: "", value: () => zero },
    ]);
  });

export const layoutForms = { reshape, computeAfter, transpose, expand, slice, split, concat, pad };
