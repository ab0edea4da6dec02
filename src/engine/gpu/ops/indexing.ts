import type { Dim } from "../../graph/dim.js";
import { mulDims } from "../../graph/dim.js";
import { indexed, wgslType, type Expression, type ExpressionContext } from "../expression.js";
import { KernelWriter } from "../kernel-writer.js";
import { WORKGROUP_THREADS } from "../program.js";
import type { GpuForm } from "./form.js";

/** Evaluates an index. */
function evaluateIndex(ids: Expression, coordinates: readonly string[], context: ExpressionContext): string {
  return context.assign("u32", `u32(${context.evaluate(ids, coordinates)})`);
}

const gatherRows: GpuForm<object> = ({ node, inputs: [table, ids] }) =>
  indexed(node, [table, ids], ([from, rows], [row, ...rest], context) =>
    context.evaluate(from, [evaluateIndex(rows, [row], context), ...rest]),
  );

const pick: GpuForm<object> = ({ node, inputs: [x, ids] }) =>
  indexed(node, [x, ids], ([from, columns], coordinates, context) =>
    context.evaluate(from, [...coordinates, evaluateIndex(columns, coordinates, context)]),
  );

const place: GpuForm<{ readonly length: Dim }> = ({ node, inputs }) => {
  const type = wgslType(node.dtype);
  return indexed(node, inputs, ([values, ids], coordinates, context) => {
    const at = coordinates.slice(0, -1);
    const column = evaluateIndex(ids, at, context);
    return `select(${type}(0), ${context.evaluate(values, at)}, ${column} == ${coordinates.at(-1)})`;
  });
};

/**
 * Threads of a workgroup, each of which adds up a column: rows may repeat, so that no two threads
 * may add to one element.
 */
const COLUMN_THREADS = WORKGROUP_THREADS;

const scatterAddRows: GpuForm<{ readonly rows: Dim }> = ({ program, node, inputs }) => {
  const [values, ids] = inputs.map((each) => program.contiguous(each));
  const zeros: Expression = { kind: "literal", dtype: node.dtype, shape: node.shape, value: 0 };
  const result = program.compute(zeros);
  const width = mulDims(...node.shape.slice(1));
  const writer = new KernelWriter(program);
  const [from, rows, output] = [writer.read(values.view), writer.read(ids.view), writer.write(result.view)];
  const size = writer.dim(width);
  writer.line(`let column = group * ${COLUMN_THREADS}u + thread;`);
  writer.line(`if (column >= ${size}) { return; }`);
  writer.line(`for (var i = 0u; i < ${writer.dim(values.shape[0])}; i++) {`);
  writer.line(`let at = u32(${rows}(i)) * ${size} + column;`);
  writer.line(`set_${output}(at, ${output}(at) + ${from}(i * ${size} + column)); }`);
  program.addStep(writer, "scatter", COLUMN_THREADS, [program.ceilDiv(width, COLUMN_THREADS)]);
  return result;
};

export const indexingForms = { gatherRows, gatherRowsWithInverse: gatherRows, pick, place, scatterAddRows };
