import type { DistinctNode } from "../graph/compile.js";
import { addDims, mulDims, type Dim, type Shape } from "../graph/dim.js";
import type { MatmulAttributes } from "../graph/ops/matmul.js";
import type { Expression } from "./expression.js";
import { KernelWriter } from "./kernel-writer.js";
import type { ProgramBuilder } from "./program-builder.js";
import { declareReductions, reduceInGroup } from "./reduce-in-group.js";

/** Threads that attend for one query, each to one key at a time. */
const THREADS = 64;

/** Terms that a thread loads before it adds them up, so that their loads overlap. */
const TERMS = 8;

/** Nodes that compute attention, and that nothing else reads. */
export interface AttentionNodes {
  /** Index of the node with the result [queries, headDim]. */
  readonly result: number;
  /** Indices of all nodes that the kernel replaces. */
  readonly replaced: readonly number[];
  readonly query: number;
  readonly bias: number;
  readonly blocks: readonly { readonly keys: number; readonly values: number }[];
  readonly scale: number;
  /** Shape of the scores: [groups, keyValueHeads, rows, heads per key, tokens, keys]. */
  readonly shape: Shape;
}

/**
 * Finds softmax(add(scores, bias)) between products with keys and with values, where no gradient
 * reads the scores.
 */
export function findAttention(nodes: readonly DistinctNode[], uses: readonly number[]): Map<number, AttentionNodes> {
  const consumers = new Map<number, number[]>();
  nodes.forEach(({ operands }, index) => {
    for (const operand of new Set(operands)) consumers.set(operand, [...(consumers.get(operand) ?? []), index]);
  });
  const matcher = new AttentionMatcher(nodes, uses, consumers);
  const found = nodes.flatMap(({ node }, index) => {
    if (node.operation.name !== "softmax" || node.shape.length !== 6) return [];
    return matcher.match(index) ?? [];
  });
  return new Map(found.map((each) => [each.result, each]));
}

class AttentionMatcher {
  private replaced: number[] = [];

  constructor(
    private readonly nodes: readonly DistinctNode[],
    private readonly uses: readonly number[],
    private readonly consumers: ReadonlyMap<number, readonly number[]>,
  ) {}

  match(softmax: number): AttentionNodes | undefined {
    this.replaced = [softmax];
    const biased = this.take(this.nodes[softmax].operands[0], "add");
    if (biased === undefined) return undefined;
    const [allScores, bias] = this.nodes[biased].operands;
    const isJoined = this.nodes[allScores].node.operation.name === "concat";
    const joined = isJoined ? this.take(allScores, "concat") : undefined;
    if (isJoined && joined === undefined) return undefined;
    const scores = joined === undefined ? [allScores] : this.nodes[joined].operands;
    const products = scores.map((each) => this.takeProduct(each, true));
    const weights = this.findWeights(softmax, scores.length);
    if (weights === undefined || products.some((each) => each === undefined)) return undefined;
    const queries = new Set(products.map((each) => this.skipReshapes(this.nodes[each!].operands[0])));
    const outputs = weights.map((each) => this.findOutput(each));
    if (queries.size !== 1 || outputs.some((each) => each === undefined)) return undefined;
    const result = this.findSum(outputs.map((each) => each!.last));
    if (result === undefined) return undefined;
    const { alpha } = this.nodes[products[0]!].node.attributes as MatmulAttributes;
    return {
      result,
      replaced: this.replaced.filter((index) => index !== result),
      query: [...queries][0],
      bias,
      blocks: products.map((each, i) => ({ keys: this.nodes[each!].operands[1], values: outputs[i]!.values })),
      scale: alpha,
      shape: this.nodes[softmax].node.shape,
    };
  }

  /** Returns a node that only one other reads, if it is of an operation. */
  private take(index: number, name: string): number | undefined {
    if (this.nodes[index].node.operation.name !== name || this.uses[index] !== 1) return undefined;
    this.replaced.push(index);
    return index;
  }

  private skipReshapes(index: number): number {
    const { node, operands } = this.nodes[index];
    return node.operation.name === "reshape" ? this.skipReshapes(operands[0]) : index;
  }

  private takeProduct(index: number, transposeB: boolean): number | undefined {
    if (this.take(index, "reshape") !== undefined) return this.takeProduct(this.nodes[index].operands[0], transposeB);
    const taken = this.take(index, "matmul");
    if (taken === undefined) return undefined;
    const attributes = this.nodes[taken].node.attributes as MatmulAttributes;
    return !attributes.transposeA && attributes.transposeB === transposeB ? taken : undefined;
  }

  /** Returns the weights of each block of keys. */
  private findWeights(softmax: number, count: number): readonly number[] | undefined {
    if (this.uses[softmax] !== 1) return undefined;
    if (count === 1) return [softmax];
    const [split] = this.consumers.get(softmax)!;
    if (this.nodes[split].node.operation.name !== "split") return undefined;
    this.replaced.push(split);
    const parts = this.consumers.get(split) ?? [];
    const byIndex = Array.from({ length: count }, (_, i) =>
      parts.find((part) => (this.nodes[part].node.attributes as { index: number }).index === i),
    );
    if (parts.length !== count || byIndex.includes(undefined)) return undefined;
    this.replaced.push(...parts);
    return byIndex as number[];
  }

  /** Returns the only node that reads another. */
  private next(index: number): number | undefined {
    const readers = this.consumers.get(index) ?? [];
    return this.uses[index] === 1 && readers.length === 1 ? readers[0] : undefined;
  }

  /** Returns the values that weights are multiplied by, and the product in its last shape. */
  private findOutput(weights: number): { values: number; last: number } | undefined {
    const reader = this.next(weights);
    if (reader === undefined) return undefined;
    const { node, operands } = this.nodes[reader];
    if (node.operation.name === "reshape") {
      this.replaced.push(reader);
      return this.findOutput(reader);
    }
    if (node.operation.name !== "matmul" || operands[0] !== weights) return undefined;
    const { transposeA, transposeB, alpha } = node.attributes as MatmulAttributes;
    if (transposeA || transposeB || alpha !== 1) return undefined;
    this.replaced.push(reader);
    let last = reader;
    for (let after = this.next(last); after !== undefined; after = this.next(last)) {
      if (this.nodes[after].node.operation.name !== "reshape" || this.nodes[last].node.shape.length === 2) break;
      this.replaced.push(after);
      last = after;
    }
    return { values: operands[1], last };
  }

  /** Returns the node that adds up the outputs of all blocks. */
  private findSum([first, ...others]: readonly number[]): number | undefined {
    let total = first;
    for (const other of others) {
      const sum = this.next(total);
      if (sum === undefined || this.next(other) !== sum || this.nodes[sum].node.operation.name !== "add")
        return undefined;
      this.replaced.push(sum);
      total = sum;
    }
    return this.nodes[total].node.shape.length === 2 ? total : undefined;
  }
}

/**
 * Adds a kernel that attends without keeping the scores: a workgroup for each query, a thread for
 * each of some keys.
 */
export function writeAttention(
  program: ProgramBuilder,
  { scale, shape }: AttentionNodes,
  inputs: {
    readonly query: Expression;
    readonly bias: Expression;
    readonly blocks: readonly { readonly keys: Expression; readonly values: Expression }[];
  },
): Expression {
  const query = program.contiguous(inputs.query);
  const bias = program.view(inputs.bias);
  const headDim = query.shape.at(-1) as number;
  const slots = mulDims(...shape.slice(0, -1));
  const result = program.temporary("float32", [slots, headDim]);
  const writer = new KernelWriter(program);
  declareReductions(writer, THREADS);
  writer.declare(`var<workgroup> query: array<f32, ${headDim}>; var<workgroup> weights: array<f32, ${THREADS}>;`);
  const q = writer.read(query.view);
  const at = writer.decompose("group", shape.slice(0, -1));
  writer.line(`for (var d = thread; d < ${headDim}u; d += ${THREADS}u) { query[d] = ${q}(group * ${headDim}u + d); }`);
  writer.line("workgroupBarrier();");
  writer.line("var largest = -3.40282346e38; var total = 0.0;");
  const parts = Array.from({ length: Math.ceil(headDim / THREADS) }, (_, i) => `sum${i}`);
  for (const part of parts) writer.line(`var ${part} = 0.0;`);
  let firstKey: Dim = 0;
  for (const block of inputs.blocks) {
    writeBlock(writer, program, { ...block, bias, at, firstKey, scale, headDim, parts });
    firstKey = addDims(firstKey, block.keys.shape.at(-2)!);
  }
  const output = writer.write(result.view);
  parts.forEach((part, i) => {
    const d = `thread + ${i * THREADS}u`;
    writer.line(`if (${d} < ${headDim}u) { set_${output}(group * ${headDim}u + ${d}, ${part} / total); }`);
  });
  program.addStep(writer, "attention", THREADS, [program.dim(slots)]);
  return result;
}

interface BlockContext {
  readonly keys: Expression;
  readonly values: Expression;
  readonly bias: Expression;
  /** Coordinates of the query: [group, keyValueHead, row, head, token]. */
  readonly at: readonly string[];
  readonly firstKey: Dim;
  readonly scale: number;
  readonly headDim: number;
  readonly parts: readonly string[];
}

/**
 * Writes the loop over the keys of a block, some at a time: larger scores rescale the sums so far.
 */
function writeBlock(writer: KernelWriter, program: ProgramBuilder, context: BlockContext): void {
  const { bias, at, firstKey, scale, headDim, parts } = context;
  const [group, head, row, , token] = at;
  const [keys, values] = [context.keys, context.values].map((x) => {
    // Keys are shared by all rows of a group, or each row has its own.
    const lead = x.shape.slice(0, -2);
    const of = (lead.length === 2 ? [group, head] : [group, head, row]).map((c, i) => (lead[i] === 1 ? "0u" : c));
    // The few new tokens of a decoding step are gathered where they are read.
    const resolved = program.resolve(x, false);
    if (resolved.kind !== "view")
      return { terms: 1, load: (key: string, d: string) => writer.evaluate(resolved, [...of, key, d]) };
    const { view } = resolved;
    const start = writer.assign("u32", writer.index(view.strides.slice(0, -2), of));
    const name = writer.read(view);
    const index = (key: string, d: string) => writer.index(view.strides.slice(-2), [key, d]);
    return { terms: TERMS, load: (key: string, d: string) => `${name}(${start} + ${index(key, d)})` };
  });
  const length = writer.dim(context.keys.shape.at(-2)!);
  writer.line(`for (var first = 0u; first < ${length}; first += ${THREADS}u) {`);
  writer.scoped(() => {
    writer.line("let key = first + thread; var score = -3.40282346e38;");
    writer.line(`if (key < ${length}) { var dot = 0.0;`);
    const step = headDim % keys.terms === 0 ? keys.terms : 1;
    writer.line(`for (var d = 0u; d < ${headDim}u; d += ${step}u) {`);
    writer.scoped(() => {
      const products = Array.from({ length: step }, (_, t) =>
        writer.assign("f32", `query[d + ${t}u] * ${keys.load("key", t === 0 ? "d" : `(d + ${t}u)`)}`),
      );
      writer.line(`dot += ${products.join(" + ")}; }`);
    });
    writer.scoped(() => {
      const position = writer.assign("u32", `${writer.dim(firstKey)} + key`);
      const within = [group, "0u", row, "0u", token, position].map((c, i) => (bias.shape[i] === 1 ? "0u" : c));
      writer.line(`score = dot * ${scale} + ${writer.evaluate(bias, within)}; }`);
    });
    const largest = reduceInGroup(writer, "max", "score", THREADS);
    writer.line(`let next = max(largest, ${largest}); let rescale = exp(largest - next); largest = next;`);
    writer.line(`let weight = select(0.0, exp(score - next), key < ${length});`);
    writer.line("weights[thread] = weight;");
    const sum = reduceInGroup(writer, "sum", "weight", THREADS);
    writer.line(`total = total * rescale + ${sum};`);
    parts.forEach((part, i) => {
      const d = `(thread + ${i * THREADS}u)`;
      writer.line(`${part} *= rescale; if (${d} < ${headDim}u) {`);
      writer.line(`for (var j = 0u; j < ${THREADS}u && first + j < ${length}; j += ${values.terms}u) {`);
      writer.scoped(() => {
        // Keys beyond the last have no weight.
        const products = Array.from({ length: values.terms }, (_, t) => {
          const key = writer.assign("u32", t === 0 ? "first + j" : `min(first + j + ${t}u, ${length} - 1u)`);
          return writer.assign("f32", `weights[j + ${t}u] * ${values.load(key, d)}`);
        });
        writer.line(`${part} += ${products.join(" + ")}; } }`);
      });
    });
    writer.line("workgroupBarrier();");
  });
  writer.line("}");
}
