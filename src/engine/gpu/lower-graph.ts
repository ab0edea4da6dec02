import { invalidArgument } from "../../core/errors.js";
import type { CompiledGraph } from "../graph/compile.js";
import { formatShape, mulDims } from "../graph/dim.js";
import { inputOperation, weightOperation } from "../graph/ops/leaves.js";
import type { MatmulAttributes } from "../graph/ops/matmul.js";
import { outputOperation } from "../graph/ops/layout.js";
import { findAttention, writeAttention } from "./attention.js";
import { isFree, type Expression, type PendingProduct } from "./expression.js";
import { gpuForms } from "./ops/gpu-forms.js";
import { mergeSteps } from "./merge-steps.js";
import type { GpuForm } from "./ops/form.js";
import { ProgramBuilder } from "./program-builder.js";
import type { GpuProgram } from "./program.js";

/**
 * Lowers a graph to a program for the GPU. Functions of elements and of positions are evaluated
 * where they are read, unless several nodes read them. @throws INVALID_ARGUMENT for an operation
 * without a form for the GPU.
 */
export function lowerGraph({ nodes, inputs, outputs, outputNodes }: CompiledGraph): GpuProgram {
  const program = new ProgramBuilder();
  const uses = countUses(nodes, outputNodes);
  const lowered: (readonly Expression[])[] = [];
  const siblings = findSiblings(nodes);
  const attention = findAttention(nodes, uses);
  const replaced = new Set([...attention.values()].flatMap((each) => each.replaced));
  const lower = (index: number): void => {
    if (lowered[index] !== undefined || replaced.has(index)) return;
    const attended = attention.get(index);
    if (attended !== undefined) {
      const [query, bias] = [attended.query, attended.bias].map((operand) => lowered[operand][0]);
      const blocks = attended.blocks.map(({ keys, values }) => ({
        keys: lowered[keys][0],
        values: lowered[values][0],
      }));
      lowered[index] = [writeAttention(program, attended, { query, bias, blocks })];
      return;
    }
    const { node, operands, readOutputs } = nodes[index];
    const group = siblings.get(index);
    if (group !== undefined) {
      // Stored factors may come after the first product.
      for (const sibling of group) lower(nodes[sibling].operands[1]);
      const products = multiplySiblings(
        program,
        group.map((sibling) => nodes[sibling]),
        lowered,
      );
      group.forEach((sibling, i) => (lowered[sibling] = [products[i]]));
      return;
    }
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
    lowered[index] = expressions.map((each) => (isShared && !isFree(each) ? program.compute(each) : each));
  };
  nodes.forEach((_, index) => lower(index));
  outputs.forEach(({ name, dtype, shape }, i) => program.addOutput(name, dtype, shape, lowered[outputNodes[i]][0]));
  return {
    sizes: listSizes(inputs),
    dims: program.dims,
    values: program.values,
    kernels: program.kernels,
    steps: mergeSteps(program),
    blocks: program.blocks,
    outputs: program.outputs,
  };
}

/**
 * Columns up to which products with the same left factor are computed in one dispatch: those of
 * low-rank adapters.
 */
const MAX_SIBLING_COLUMNS = 128;
/** Most right factors that one kernel reads, each of which may be in another buffer. */
const MAX_SIBLINGS = 4;

/**
 * Returns, by the index of each, groups of small products of one left factor with stored right
 * factors of the same shape.
 */
function findSiblings(nodes: CompiledGraph["nodes"]): Map<number, readonly number[]> {
  const groups = new Map<string, number[]>();
  nodes.forEach(({ node, operands }, index) => {
    if (node.operation.name !== "matmul") return;
    const { transposeA, transposeB, alpha } = node.attributes as MatmulAttributes;
    const [a, b] = node.inputs;
    const right = nodes[operands[1]].node.operation;
    const columns = node.shape.at(-1)!;
    const isSmall = typeof columns === "number" && columns <= MAX_SIBLING_COLUMNS;
    const isStored = right === inputOperation || right === weightOperation;
    if (a.shape.length !== 2 || b.shape.length !== 2 || transposeA || alpha !== 1 || !isSmall || !isStored) return;
    const key = `${operands[0]} ${transposeB} ${formatShape(b.shape)} ${b.dtype} ${right.name}`;
    const group = groups.get(key) ?? [];
    if (group.length < MAX_SIBLINGS) groups.set(key, [...group, index]);
  });
  const found = [...groups.values()].filter((group) => group.length > 1);
  return new Map(found.flatMap((group) => group.map((index) => [index, group] as const)));
}

/** Computes products with the same left factor in one dispatch. */
function multiplySiblings(
  program: ProgramBuilder,
  siblings: readonly CompiledGraph["nodes"][number][],
  lowered: (readonly Expression[])[],
): Expression[] {
  const [{ node, operands }] = siblings;
  const { transposeB } = node.attributes as MatmulAttributes;
  const left = program.view(lowered[operands[0]][0]);
  const rights = siblings.map((sibling) => program.view(lowered[sibling.operands[1]][0]));
  const [rows, columns] = node.shape;
  const product: PendingProduct = {
    a: left,
    b: { ...rights[0], others: rights.slice(1).map(({ view }) => view) },
    transposeA: false,
    transposeB,
    alpha: 1,
    inner: left.shape[1],
  };
  const shape = [siblings.length, rows, columns];
  const { view } = program.compute({ kind: "product", dtype: node.dtype, shape, product });
  return siblings.map((_, i) => ({
    kind: "view",
    dtype: node.dtype,
    shape: node.shape,
    view: { ...view, offset: mulDims(i, rows, columns), strides: view.strides.slice(1) },
  }));
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
