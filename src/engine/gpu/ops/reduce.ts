import { mulDims } from "../../graph/dim.js";
import type { ReduceAttributes } from "../../graph/ops/reduce.js";
import { reshapeExpression, type Expression } from "../expression.js";
import { WORKGROUP_THREADS } from "../program.js";
import { KernelWriter } from "../kernel-writer.js";
import type { ProgramBuilder } from "../program-builder.js";
import { combine, declareReductions, neutral, reduceInGroup, type Reduction } from "../reduce-in-group.js";
import type { GpuForm } from "./form.js";

/** Columns and lanes of a workgroup that reduces leading axes. */
const COLUMNS = 16;
const LANES = WORKGROUP_THREADS / COLUMNS;

const reduceForm =
  (reduction: Reduction): GpuForm<ReduceAttributes> =>
  ({ program, node, inputs: [x], attributes: { axes } }) => {
    const resolved = program.resolve(x, false);
    const isLastReduced = axes.includes(x.shape.length - 1);
    const result = isLastReduced
      ? reduceRows(program, reduction, resolved, axes)
      : reduceColumns(program, reduction, resolved, axes);
    return reshapeExpression(result, node.shape);
  };

/** Returns kept and reduced axes with their shapes. */
function splitAxes(x: Expression, axes: readonly number[]) {
  const kept = x.shape.flatMap((_, axis) => (axes.includes(axis) ? [] : [axis]));
  const shapeOf = (list: readonly number[]) => list.map((axis) => x.shape[axis]);
  return { kept, keptShape: shapeOf(kept), reducedShape: shapeOf(axes) };
}

function joinCoordinates(
  rank: number,
  kept: readonly number[],
  keptAt: readonly string[],
  axes: readonly number[],
  reducedAt: readonly string[],
): string[] {
  return Array.from({ length: rank }, (_, axis) => {
    const index = kept.indexOf(axis);
    return index >= 0 ? keptAt[index] : reducedAt[axes.indexOf(axis)];
  });
}

/** A workgroup reduces the elements of one result. */
function reduceRows(program: ProgramBuilder, reduction: Reduction, x: Expression, axes: readonly number[]): Expression {
  const { kept, keptShape, reducedShape } = splitAxes(x, axes);
  const result = program.temporary(x.dtype, keptShape);
  const width = mulDims(...reducedShape);
  const threads = WORKGROUP_THREADS;
  const writer = new KernelWriter(program);
  declareReductions(writer, threads);
  const keptAt = writer.decompose("group", keptShape);
  writer.line(`var total = ${neutral(reduction)};`);
  writer.line(`for (var i = thread; i < ${writer.dim(width)}; i += ${threads}u) {`);
  writer.scoped(() => {
    const at = joinCoordinates(x.shape.length, kept, keptAt, axes, writer.decompose("i", reducedShape));
    writer.line(`total = ${combine(reduction, "total", toFloat(x, writer.evaluate(x, at)))};`);
  });
  writer.line("}");
  const total = reduceInGroup(writer, reduction, "total", threads);
  const output = writer.write(result.view);
  writer.line(`if (thread == 0u) { set_${output}(group, ${fromFloat(x, total)}); }`);
  program.addStep(writer, "reduce", threads, [program.dim(mulDims(...keptShape))]);
  return result;
}

/** A workgroup reduces neighboring columns, each by several threads. */
function reduceColumns(
  program: ProgramBuilder,
  reduction: Reduction,
  x: Expression,
  axes: readonly number[],
): Expression {
  const { kept, keptShape, reducedShape } = splitAxes(x, axes);
  const result = program.temporary(x.dtype, keptShape);
  const count = mulDims(...keptShape);
  const writer = new KernelWriter(program);
  writer.declare(`var<workgroup> combined: array<f32, ${WORKGROUP_THREADS}>;`);
  writer.line(`let column = group * ${COLUMNS}u + thread % ${COLUMNS}u; let lane = thread / ${COLUMNS}u;`);
  writer.line(`var total = ${neutral(reduction)};`);
  writer.line(`if (column < ${writer.dim(count)}) {`);
  writer.scoped(() => {
    const keptAt = writer.decompose("column", keptShape);
    writer.line(`for (var i = lane; i < ${writer.dim(mulDims(...reducedShape))}; i += ${LANES}u) {`);
    writer.scoped(() => {
      const at = joinCoordinates(x.shape.length, kept, keptAt, axes, writer.decompose("i", reducedShape));
      writer.line(`total = ${combine(reduction, "total", toFloat(x, writer.evaluate(x, at)))};`);
    });
    writer.line("}");
  });
  writer.line("}");
  writer.line("combined[thread] = total;");
  writer.line("workgroupBarrier();");
  const output = writer.write(result.view);
  writer.line(`if (lane == 0u && column < ${writer.dim(count)}) {`);
  writer.line(`for (var i = 1u; i < ${LANES}u; i++) {`);
  writer.line(`total = ${combine(reduction, "total", `combined[thread + i * ${COLUMNS}u]`)}; }`);
  writer.line(`set_${output}(column, ${fromFloat(x, "total")}); }`);
  program.addStep(writer, "reduce", WORKGROUP_THREADS, [program.ceilDiv(count, COLUMNS)]);
  return result;
}

/** Whole numbers are reduced as float32. */
const toFloat = ({ dtype }: Expression, code: string): string => (dtype === "float32" ? code : `f32(${code})`);
const fromFloat = ({ dtype }: Expression, code: string): string => (dtype === "float32" ? code : `i32(${code})`);

const argMax: GpuForm<object> = ({ program, node, inputs: [x] }) => {
  const resolved = program.resolve(x, false);
  const result = program.temporary(node.dtype, node.shape);
  const width = x.shape.at(-1)!;
  const writer = new KernelWriter(program);
  const count = mulDims(...node.shape);
  writer.line(`let row = group * ${WORKGROUP_THREADS}u + thread;`);
  writer.line(`if (row >= ${writer.dim(count)}) { return; }`);
  const at = writer.decompose("row", node.shape);
  writer.line("var best = 0u; var largest = 0.0;");
  writer.line(`for (var i = 0u; i < ${writer.dim(width)}; i++) {`);
  writer.scoped(() => {
    const value = toFloat(x, writer.evaluate(resolved, [...at, "i"]));
    writer.line(`if (i == 0u || ${value} > largest) { best = i; largest = ${value}; }`);
  });
  writer.line("}");
  const output = writer.write(result.view);
  writer.line(`set_${output}(row, i32(best));`);
  program.addStep(writer, "reduce", WORKGROUP_THREADS, [program.ceilDiv(count, WORKGROUP_THREADS)]);
  return result;
};

export const reduceForms = { reduceSum: reduceForm("sum"), reduceMax: reduceForm("max"), argMax };
