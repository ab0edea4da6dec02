import { mulDims } from "../../graph/dim.js";
import type { NormAttributes } from "../../graph/ops/norm.js";
import type { Expression } from "../expression.js";
import { WORKGROUP_THREADS } from "../program.js";
import { KernelWriter } from "../kernel-writer.js";
import type { ProgramBuilder } from "../program-builder.js";
import { declareReductions, neutral, reduceInGroup } from "../reduce-in-group.js";
import type { GpuForm } from "./form.js";

/** A kernel of which each workgroup computes one row of the last axis. */
interface RowKernel {
  readonly writer: KernelWriter;
  readonly threads: number;
  /** Coordinates of the row, without the last. */
  readonly at: readonly string[];
  /** Writes a loop over the columns of the thread. */
  forColumns(write: () => void): void;
  finish(label: string): void;
}

function startRowKernel(program: ProgramBuilder, shape: Expression["shape"]): RowKernel {
  const [width, rows] = [shape.at(-1)!, shape.slice(0, -1)];
  const threads = WORKGROUP_THREADS;
  const writer = new KernelWriter(program);
  declareReductions(writer, threads);
  const at = writer.decompose("group", rows);
  return {
    writer,
    threads,
    at,
    forColumns: (write) => {
      writer.line(`for (var i = thread; i < ${writer.dim(width)}; i += ${threads}u) {`);
      writer.scoped(write);
      writer.line("}");
    },
    finish: (label) => program.addStep(writer, label, threads, [program.dim(mulDims(...rows))]),
  };
}

const softmaxForm =
  (isLog: boolean): GpuForm<object> =>
  ({ program, node, inputs: [x] }) => {
    const resolved = program.resolve(x, false);
    const result = program.temporary(node.dtype, node.shape);
    const kernel = startRowKernel(program, node.shape);
    const { writer, threads, at } = kernel;
    const output = writer.write(result.view);
    writer.line(`let start = group * ${writer.dim(node.shape.at(-1)!)};`);
    writer.line(`var largest = ${neutral("max")};`);
    kernel.forColumns(() => {
      writer.line(`let x = ${writer.evaluate(resolved, [...at, "i"])};`);
      writer.line(`set_${output}(start + i, x); largest = max(largest, x);`);
    });
    const max = reduceInGroup(writer, "max", "largest", threads);
    writer.line("var total = 0.0;");
    kernel.forColumns(() => {
      writer.line(`let e = exp(${output}(start + i) - ${max});`);
      writer.line(`total += e;${isLog ? "" : ` set_${output}(start + i, e);`}`);
    });
    const sum = reduceInGroup(writer, "sum", "total", threads);
    if (isLog) writer.line(`let shift = ${max} + log(${sum});`);
    kernel.forColumns(() =>
      writer.line(`set_${output}(start + i, ${output}(start + i) ${isLog ? "- shift" : `/ ${sum}`});`),
    );
    kernel.finish("softmax");
    return result;
  };

const rmsNorm: GpuForm<NormAttributes> = ({
  program,
  node,
  inputs: [input, scale],
  attributes: { epsilon },
  isRead,
}) => {
  const x = program.view(input);
  const weight = program.resolve(scale, false);
  const [result, inverse] = node.outputs.map(({ dtype, shape }) => program.temporary(dtype, shape));
  const kernel = startRowKernel(program, x.shape);
  const { writer, threads, at } = kernel;
  const width = writer.dim(x.shape.at(-1)!);
  writer.line("var total = 0.0;");
  kernel.forColumns(() => {
    const value = writer.evaluate(x, [...at, "i"]);
    writer.line(`total += ${value} * ${value};`);
  });
  const sum = reduceInGroup(writer, "sum", "total", threads);
  writer.line(`let r = 1.0 / sqrt(${sum} / f32(${width}) + ${epsilon});`);
  const output = writer.write(result.view);
  kernel.forColumns(() => {
    const [value, factor] = [writer.evaluate(x, [...at, "i"]), writer.evaluate(weight, ["i"])];
    writer.line(`set_${output}(group * ${width} + i, ${value} * r * ${factor});`);
  });
  if (isRead(1)) writer.line(`if (thread == 0u) { set_${writer.write(inverse.view)}(group, r); }`);
  kernel.finish("norm");
  return [result, inverse];
};

const layerNorm: GpuForm<NormAttributes> = ({
  program,
  node,
  inputs: [input, scale, shift],
  attributes: { epsilon },
  isRead,
}) => {
  const x = program.view(input);
  const [weight, bias] = [scale, shift].map((each) => program.resolve(each, false));
  const [result, mean, inverse] = node.outputs.map(({ dtype, shape }) => program.temporary(dtype, shape));
  const kernel = startRowKernel(program, x.shape);
  const { writer, threads, at } = kernel;
  const width = writer.dim(x.shape.at(-1)!);
  const value = () => writer.evaluate(x, [...at, "i"]);
  writer.line("var total = 0.0; var squares = 0.0;");
  kernel.forColumns(() => writer.line(`total += ${value()};`));
  writer.line(`let mean = ${reduceInGroup(writer, "sum", "total", threads)} / f32(${width});`);
  kernel.forColumns(() => writer.line(`let d = ${value()} - mean; squares += d * d;`));
  const sum = reduceInGroup(writer, "sum", "squares", threads);
  writer.line(`let r = 1.0 / sqrt(${sum} / f32(${width}) + ${epsilon});`);
  const output = writer.write(result.view);
  kernel.forColumns(() => {
    const [factor, addend] = [weight, bias].map((each) => writer.evaluate(each, ["i"]));
    writer.line(`set_${output}(group * ${width} + i, (${value()} - mean) * r * ${factor} + ${addend});`);
  });
  if (isRead(1)) writer.line(`if (thread == 0u) { set_${writer.write(mean.view)}(group, mean); }`);
  if (isRead(2)) writer.line(`if (thread == 0u) { set_${writer.write(inverse.view)}(group, r); }`);
  kernel.finish("norm");
  return [result, mean, inverse];
};

export const normForms = { softmax: softmaxForm(false), logSoftmax: softmaxForm(true), rmsNorm, layerNorm };
