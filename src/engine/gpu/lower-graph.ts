import { invalidArgument } from "../../core/errors.js";
import type { CompiledGraph } from "../graph/compile.js";
import { outputOperation } from "../graph/ops/output.js";
import { isFree, type Expression } from "./expression.js";
import { gpuForms } from "./ops/gpu-forms.js";
import type { GpuForm } from "./ops/form.js";
import { ProgramBuilder } from "./program-builder.js";
import type { GpuProgram } from "./program.js";

/**
 * Lowers a graph to a program for the GPU. Functions of elements and of positions are evaluated where they are read, unless several
 * nodes read them. @throws INVALID_ARGUMENT for an operation without a form for the GPU.
 */
export function lowerGraph({ nodes, inputs, outputs, outputNodes }: CompiledGraph): GpuProgram {
  const program = new ProgramBuilder();
  const uses = countUses(nodes, outputNodes);
  const lowered: (readonly Expression[])[] = [];
  nodes.forEach(({ node, operands, readOutputs }, index) => {
    const form = (gpuForms as object as Readonly<Record<string, GpuForm<unknown> | undefined>>)[node.operation.name];
    if (form === undefined) throw invalidArgument(`The operation ${node.operation.name} has no form for the GPU.`);
    const result = form({
      program,
      node,
      inputs:
        node.operation === outputOperation ? lowered[operands[0]] : operands.map((operand) => lowered[operand][0]),
      attributes: node.attributes,
      isRead: (output) => readOutputs.has(output),
    });
    const expressions = (Array.isArray(result) ? result : [result]) as readonly Expression[];
    const isShared = uses[index] > 1;
    lowered.push(expressions.map((each) => (isShared && !isFree(each) ? program.compute(each) : each)));
  });
  outputs.forEach(({ name, dtype, shape }, i) => program.addOutput(name, dtype, shape, lowered[outputNodes[i]][0]));
  return {
    sizes: listSizes(inputs),
    dims: program.dims,
    values: program.values,
    kernels: program.kernels,
    steps: program.steps,
    blocks: program.blocks,
    outputs: program.outputs,
  };
}

function countUses(nodes: CompiledGraph["nodes"], outputNodes: readonly number[]): number[] {
  const uses = nodes.map(() => 0);
  for (const { operands } of nodes) for (const operand of operands) uses[operand]++;
  for (const index of outputNodes) uses[index]++;
  return uses;
}

function listSizes(inputs: CompiledGraph["inputs"]): GpuProgram["sizes"] {
  const sources = new Map<string, { name: string; input: string; axis: number }>();
  for (const { name: input, shape } of inputs)
    shape.forEach((size, axis) => {
      if (typeof size === "number" || sources.has(size.key) || size.terms.get(size.key) !== 1) return;
      sources.set(size.key, { name: size.key, input, axis });
    });
  return [...sources.values()];
}
