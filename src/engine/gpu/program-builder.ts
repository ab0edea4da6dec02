import { dim, mulDims, type Dim, type Shape } from "../graph/dim.js";
import type { DType } from "../tensor/dtype.js";
import { sameShape } from "../graph/dim.js";
import {
  contiguousStrides,
  isContiguous,
  isElementwise,
  isFree,
  listArguments,
  type Expression,
  type PendingProduct,
  type ValueView,
} from "./expression.js";
import { KernelWriter } from "./kernel-writer.js";
import {
  CHUNK_ROWS,
  CHUNK_START,
  WORKGROUP_THREADS,
  type DimTerms,
  type ElementFormat,
  type GpuNumber,
  type GpuOutput,
  type GpuSource,
  type GpuStep,
  type GpuValue,
  type KernelCall,
  type KernelSource,
  type RepeatedBlock,
} from "./program.js";
import { writeProduct } from "./write-product.js";

/** Most buffers that one kernel uses, as each shader stage has few. */
const MAX_BUFFERS = 8;
/** Most views that one kernel reads. */
const MAX_VIEWS = 12;
/** Buffers that inputs are reckoned to be in: those fed by value, parameters and caches. */
const INPUT_BUFFERS = 3;

/** Format of a computed value. */
function computedFormat(dtype: DType): ElementFormat {
  if (dtype === "bool") return "bool";
  return dtype === "float32" ? "f32" : "i32";
}

/** Collects the values, kernels and steps of a program. */
export class ProgramBuilder {
  readonly values: GpuValue[] = [];
  readonly kernels: KernelSource[] = [];
  readonly steps: GpuStep[] = [];
  readonly blocks: RepeatedBlock[] = [];
  readonly dims: DimTerms[] = [];
  readonly outputs: GpuOutput[] = [];
  private readonly dimIndices = new Map<string, number>();
  private readonly kernelIndices = new Map<string, number>();
  private openBlock: number | undefined;

  /** Returns a dimension as a number of the program. */
  dim(dim: Dim): GpuNumber {
    if (typeof dim === "number") return dim;
    const known = this.dimIndices.get(dim.key);
    if (known !== undefined) return { dim: known };
    const terms = [...dim.terms].map(
      ([monomial, coefficient]) => [coefficient, monomial === "" ? [] : monomial.split("*")] as const,
    );
    const index = this.dims.push(terms) - 1;
    this.dimIndices.set(dim.key, index);
    return { dim: index };
  }

  ceilDiv(dim: Dim, by: number): GpuNumber {
    const number = this.dim(dim);
    if (typeof number === "number") return Math.ceil(number / by);
    return { dim: (number as { dim: number }).dim, ceilDiv: by };
  }

  addValue(source: GpuSource, format: ElementFormat, elements: GpuNumber): number {
    return this.values.push({ source, format, elements }) - 1;
  }

  /** Creates a temporary value. */
  temporary(dtype: DType, shape: Shape): Extract<Expression, { kind: "view" }> {
    const format = computedFormat(dtype);
    const value = this.addValue({ kind: "temporary" }, format, this.dim(mulDims(...shape)));
    return { kind: "view", dtype, shape, view: { value, format, offset: 0, strides: contiguousStrides(shape) } };
  }

  /** Adds a dispatch of the kernel that a writer has written. */
  addStep(writer: KernelWriter, label: string, threads: number, groups: readonly GpuNumber[]): void {
    this.addChoice([this.createCall(writer, label, threads, groups)]);
  }

  /** Adds a dispatch of the first call that applies to the number of rows. */
  addChoice(calls: readonly KernelCall[]): void {
    this.steps.push({ parts: [{ calls }], block: this.openBlock });
  }

  createCall(
    writer: KernelWriter,
    label: string,
    threads: number,
    groups: readonly GpuNumber[],
    range: Pick<KernelCall, "rows" | "upTo"> = {},
  ): KernelCall {
    const { source, ...operands } = writer.finish(label, threads);
    return { ...operands, ...range, kernel: this.addKernel(source), groups };
  }

  /** Repeats the steps that `write` adds for chunks of rows. */
  repeat(rows: Dim, chunkRows: number, write: (chunk: { readonly rows: Dim; readonly start: Dim }) => void): void {
    this.openBlock = this.blocks.push({ rows: this.dim(rows), chunkRows }) - 1;
    write({ rows: dim(CHUNK_ROWS), start: dim(CHUNK_START) });
    this.openBlock = undefined;
  }

  private addKernel(source: KernelSource): number {
    const key = JSON.stringify(source);
    const index = this.kernelIndices.get(key) ?? this.kernels.push(source) - 1;
    this.kernelIndices.set(key, index);
    return index;
  }

  /** Returns a view of an expression's elements, computed if it is none. */
  view(x: Expression): Extract<Expression, { kind: "view" }> {
    return x.kind === "view" ? x : this.compute(x);
  }

  /** Returns a view whose elements lie in row-major order. */
  contiguous(x: Expression): Extract<Expression, { kind: "view" }> {
    return x.kind === "view" && isContiguous(x.shape, x.view.strides) ? x : this.compute(x);
  }

  /** Computes an expression into a new value. */
  compute(x: Expression): Extract<Expression, { kind: "view" }> {
    const target = this.temporary(x.dtype, x.shape);
    this.store(x, target.view);
    return target;
  }

  /** Computes an expression into a view with its elements in row-major order. */
  store(x: Expression, target: ValueView): void {
    const resolved = this.resolve(x, true);
    const products = findProducts(resolved);
    if (products.length > 0) {
      writeProduct(this, resolved, x.shape, products, target);
      return;
    }
    const writer = new KernelWriter(this);
    const output = writer.write(target);
    const count = mulDims(...x.shape);
    writer.line(`let i = group * ${WORKGROUP_THREADS}u + thread;`);
    writer.line(`if (i >= ${writer.dim(count)}) { return; }`);
    const value = isElementwise(resolved)
      ? writer.evaluateLinear(resolved, x.shape, "i")
      : writer.evaluate(resolved, writer.decompose("i", x.shape));
    writer.line(`set_${output}(i, ${value});`);
    this.addStep(writer, "elementwise", WORKGROUP_THREADS, [this.ceilDiv(count, WORKGROUP_THREADS)]);
  }

  /**
   * Returns an expression that one kernel can evaluate: matrix products are computed first, except
   * those whose elements are read in the order in which they are computed (`isInOrder`), and so are
   * parts that read too many values.
   */
  resolve(x: Expression, isInOrder: boolean): Expression {
    let kept: PendingProduct | undefined;
    const visit = (each: Expression, inOrder: boolean): Expression => {
      if (isFree(each)) return each;
      if (each.kind === "product") {
        const fits = inOrder && (kept === undefined || isSameProductShape(kept, each.product));
        if (!fits) return this.compute(each);
        kept ??= each.product;
        return each;
      }
      if (each.kind === "reshape") {
        const keepsOrder = inOrder && (each.of.kind === "product" || each.of.kind === "call");
        return { ...each, of: visit(each.of, keepsOrder) };
      }
      const keepsOrder = inOrder && each.kind === "call";
      const args = listArguments(each).map((arg) => visit(arg, keepsOrder && sameShape(arg.shape, each.shape)));
      return { ...each, args } as Expression;
    };
    const resolved = visit(x, isInOrder);
    return this.fitsKernel(resolved) ? resolved : this.split(resolved);
  }

  /** Whether one kernel can read all that an expression reads. */
  private fitsKernel(x: Expression): boolean {
    const values = [...listValues(x)];
    const count = (kind: GpuSource["kind"]) => values.filter((value) => this.values[value].source.kind === kind).length;
    // Temporary values share a buffer with the result, and constants have one.
    const buffers = 1 + Math.min(1, count("constant")) + count("weight") + Math.min(INPUT_BUFFERS, count("input"));
    return values.length <= MAX_VIEWS && buffers <= MAX_BUFFERS;
  }

  /** Computes the arguments of an expression that reads too many values. */
  private split(x: Expression): Expression {
    if (x.kind === "reshape") return { ...x, of: this.split(x.of) };
    if (x.kind !== "call" && x.kind !== "indexed") return x;
    const args = x.args.map((arg) => (listValues(arg).size > 2 && !isFree(arg) ? this.compute(arg) : arg));
    return { ...x, args };
  }

  addOutput(name: string, dtype: DType, shape: Shape, x: Expression): void {
    const { view } = this.contiguous(x);
    const { source, format } = this.values[view.value];
    const isOwn = source.kind === "temporary" && format === computedFormat(dtype) && view.offset === 0;
    // Inputs and values with two output names are copied.
    const isFree = isOwn && !this.outputs.some(({ value }) => value === view.value);
    const value = isFree ? view.value : this.compute({ ...x, kind: "view", view }).view.value;
    this.outputs.push({ name, dtype, value, shape: shape.map((dim) => this.dim(dim)) });
  }
}

/** Returns the products whose elements an expression reads in order. */
function findProducts(x: Expression): Extract<Expression, { kind: "product" }>[] {
  if (x.kind === "product") return [x];
  return [...new Set(listArguments(x).flatMap(findProducts))];
}

function isSameProductShape(a: PendingProduct, b: PendingProduct): boolean {
  const dims = (product: PendingProduct) => [
    product.a.shape.at(product.transposeA ? -1 : -2)!,
    product.b.shape.at(product.transposeB ? -2 : -1)!,
  ];
  const isMatrix = (product: PendingProduct) => product.a.shape.length === 2 && product.b.shape.length === 2;
  return isMatrix(a) && isMatrix(b) && sameShape(dims(a), dims(b));
}

/** Returns the values that an expression reads. */
function listValues(x: Expression): Set<number> {
  const values = new Set<number>();
  const visit = (each: Expression): void => {
    if (each.kind === "view") values.add(each.view.value);
    if (each.kind === "product") {
      const { a, b } = each.product;
      for (const { value } of [a.view, b.view, ...(b.others ?? [])]) values.add(value);
      if (b.blocks !== undefined) values.add(b.blocks.scales.value);
    }
    listArguments(each).forEach(visit);
  };
  visit(x);
  return values;
}
