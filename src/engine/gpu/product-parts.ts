import type { Dim, Shape } from "../graph/dim.js";
import { broadcastStrides, type Expression, type PendingProduct, type ValueView } from "./expression.js";
import type { KernelWriter } from "./kernel-writer.js";
import type { GpuNumber, KernelCall } from "./program.js";

/** The part of a program builder that dispatches of products need. */
export interface ProductProgram {
  dim(dim: Dim): GpuNumber;
  ceilDiv(dim: Dim, by: number): GpuNumber;
  createCall(
    writer: KernelWriter,
    label: string,
    threads: number,
    groups: readonly GpuNumber[],
    range?: Pick<KernelCall, "rows" | "upTo">,
  ): KernelCall;
  addChoice(calls: readonly KernelCall[]): void;
}

export type Product = Extract<Expression, { kind: "product" }>;

/** Products that are added up in one accumulator, and the expression of their sum. */
export interface ProductSum {
  readonly sum: Expression;
  readonly products: readonly Product[];
}

/** What the kernels of a dispatch of products have in common. */
export interface ProductContext {
  readonly program: ProductProgram;
  readonly root: Expression;
  readonly shape: Shape;
  readonly sums: readonly ProductSum[];
  readonly target: ValueView;
  readonly rows: Dim;
  readonly columns: Dim;
  readonly batch: Dim;
}

/** WGSL of a product's factors. */
interface Factors {
  readonly product: PendingProduct;
  readonly inner: string;
  /** Start of the batch's matrices. */
  readonly startA: string;
  readonly startB: string;
  a(row: string, k: string): string;
  b(k: string, column: string): string;
}

/** Writes where the factors of a batch's product begin, and returns how their elements are read. */
export function writeFactors(writer: KernelWriter, { product, shape }: Product): Factors {
  const { a, b, transposeA, transposeB, inner, alpha } = product;
  const batchShape = shape.slice(0, -2);
  const coordinates = writer.decompose("batch", batchShape);
  const start = ({ view, shape: own }: { view: ValueView; shape: Shape }) =>
    writer.assign(
      "u32",
      writer.index(broadcastStrides(own.slice(0, -2), view.strides.slice(0, -2), batchShape), coordinates),
    );
  const [startA, startB] = [start(a), start(b)];
  const element = (side: PendingProduct["a"], start: string, isTransposed: boolean, row: string, column: string) => {
    const strides = side.view.strides.slice(-2);
    const [rowStride, columnStride] = isTransposed ? [...strides].reverse() : strides;
    return `${start} + ${writer.index([rowStride, columnStride], [row, column])}`;
  };
  const nameA = writer.read(a.view);
  const nameB = b.others === undefined ? writer.read(b.view) : writeChoice(writer, [b.view, ...b.others]);
  const scales = b.blocks && writer.read(b.blocks.scales);
  return {
    product,
    inner: writer.dim(inner),
    startA,
    startB,
    a: (row, k) => `${alpha === 1 ? "" : `${alpha} * `}${nameA}(${element(a, startA, transposeA, row, k)})`,
    b: (k, column) => {
      const index = element(b, startB, transposeB, k, column);
      if (b.others !== undefined) return `${nameB}(batch, ${index})`;
      if (b.blocks === undefined) return `${nameB}(${index})`;
      const { blockSize, middle } = b.blocks;
      return `f32(${nameB}(${index}) - ${middle}) * ${scales}((${index}) / ${blockSize}u)`;
    },
  };
}

/** Declares a function that loads from one of several views. */
function writeChoice(writer: KernelWriter, views: readonly ValueView[]): string {
  const cases = views.map((view, i) => `case ${i}u: { return ${writer.read(view)}(i); }`);
  writer.declare(
    `fn choose(which: u32, i: u32) -> f32 { switch which { ${cases.join(" ")} default: { return 0.0; } } }`,
  );
  return "choose";
}

/** Writes the store of one element of the result, whose products are `sums`. */
export function writeStore(
  writer: KernelWriter,
  { root, shape, sums, target, columns, rows }: ProductContext,
  [row, column]: readonly [string, string],
  totals: readonly string[],
): void {
  sums.forEach(({ sum }, i) => writer.bind(sum, totals[i]));
  const output = writer.write(target);
  const linear = writer.assign("u32", `(batch * ${writer.dim(rows)} + ${row}) * ${writer.dim(columns)} + ${column}`);
  const isPlain = sums[0].sum === root;
  const value = isPlain ? writer.evaluate(root, []) : writer.evaluate(root, writer.decompose(linear, shape));
  writer.line(`set_${output}(${linear}, ${value});`);
}
