import { mulDims, type Dim, type Shape } from "../graph/dim.js";
import { broadcastStrides, type Expression, type PendingProduct, type ValueView } from "./expression.js";
import { KernelWriter } from "./kernel-writer.js";
import type { KernelCall } from "./program.js";
import type { ProgramBuilder } from "./program-builder.js";

type Product = Extract<Expression, { kind: "product" }>;

/** Threads of a workgroup that computes products. */
const THREADS = 256;

/** Rows and columns of the tile that a workgroup computes, and terms that it holds in shared memory at a time. */
const TILE = 64;
const DEPTH = 16;

/** Rows up to which a workgroup computes few columns of all rows; more rows are computed in tiles. */
const FEW_ROWS = 32;

/**
 * Adds the dispatch that computes an expression over `shape` with matrix products, whose elements it reads in order, into `target`.
 * Products of few rows read each weight once; the others are computed in tiles.
 */
export function writeProduct(
  program: ProgramBuilder,
  root: Expression,
  shape: Shape,
  products: readonly Product[],
  target: ValueView,
): void {
  const [{ product, shape: productShape }] = products;
  const [rows, columns] = productShape.slice(-2);
  const batch = mulDims(...productShape.slice(0, -2));
  const context = { program, root, shape, products, target, rows, columns, batch };
  const isFewRows = typeof rows === "number" && rows <= FEW_ROWS;
  const calls: KernelCall[] = [];
  if (!product.transposeA && (typeof rows !== "number" || isFewRows)) {
    const rowsAtOnce = typeof rows === "number" ? [rows <= 1 ? 1 : rows <= 4 ? 4 : 8] : [1, 4, 8];
    for (const count of rowsAtOnce) calls.push(fewRowsCall(context, count, count < 8 ? count : FEW_ROWS));
  }
  if (product.transposeA || !isFewRows) calls.push(tileCall(context));
  program.addChoice(calls);
}

interface ProductContext {
  readonly program: ProgramBuilder;
  readonly root: Expression;
  readonly shape: Shape;
  readonly products: readonly Product[];
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

function writeFactors(writer: KernelWriter, { product, shape }: Product): Factors {
  const { a, b, transposeA, transposeB, inner } = product;
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
  const nameB = writer.read(b.view);
  const scales = b.blocks && writer.read(b.blocks.scales);
  return {
    product,
    inner: writer.dim(inner),
    startA,
    startB,
    a: (row, k) => `${nameA}(${element(a, startA, transposeA, row, k)})`,
    b: (k, column) => {
      const index = element(b, startB, transposeB, k, column);
      if (b.blocks === undefined) return `${nameB}(${index})`;
      const { blockSize, middle } = b.blocks;
      return `f32(${nameB}(${index}) - ${middle}) * ${scales}((${index}) / ${blockSize}u)`;
    },
  };
}

/** Writes the store of one element of the result, whose products are `sums`. */
function writeStore(
  writer: KernelWriter,
  { root, shape, products, target, columns, rows }: ProductContext,
  [row, column]: readonly [string, string],
  sums: readonly string[],
): void {
  products.forEach((product, i) => {
    const { alpha } = product.product;
    writer.bind(product, alpha === 1 ? sums[i] : `(${sums[i]} * ${alpha})`);
  });
  const output = writer.write(target);
  const linear = writer.assign("u32", `(batch * ${writer.dim(rows)} + ${row}) * ${writer.dim(columns)} + ${column}`);
  const isPlain = root.kind === "product";
  const value = isPlain ? writer.evaluate(root, []) : writer.evaluate(root, writer.decompose(linear, shape));
  writer.line(`set_${output}(${linear}, ${value});`);
}

/** Each thread adds up part of the terms of one column for some rows. */
function fewRowsCall(context: ProductContext, rowsAtOnce: number, upTo: number): KernelCall {
  const { program, products, rows, columns, batch } = context;
  const writer = new KernelWriter(program);
  const first = products[0].product;
  const isInnerContiguous = first.transposeB;
  const lanes = isInnerContiguous ? 32 : 4;
  const width = THREADS / lanes;
  const [lane, slot] = isInnerContiguous
    ? [`thread % ${lanes}u`, `thread / ${lanes}u`]
    : [`thread / ${width}u`, `thread % ${width}u`];
  writer.declare(`var<workgroup> partial: array<f32, ${THREADS * rowsAtOnce}>;`);
  writer.line(`let column_groups = (${writer.dim(columns)} + ${width - 1}u) / ${width}u;`);
  writer.line(`let row_groups = (${writer.dim(rows)} + ${rowsAtOnce - 1}u) / ${rowsAtOnce}u;`);
  writer.line(`let batch = group / (column_groups * row_groups);`);
  writer.line(`let first_row = ((group / column_groups) % row_groups) * ${rowsAtOnce}u;`);
  writer.line(`let first_column = (group % column_groups) * ${width}u;`);
  writer.line(`let lane = ${lane}; let slot = ${slot}; let column = first_column + slot;`);
  writer.line(`let last_row = ${writer.dim(rows)} - 1u;`);
  const outputs = products.map((product, p) => {
    const factors = writeFactors(writer, product);
    const rowNames = Array.from({ length: rowsAtOnce }, (_, i) =>
      writer.assign("u32", i === 0 ? "first_row" : `min(first_row + ${i}u, last_row)`),
    );
    rowNames.forEach((_, i) => writer.line(`var s${p}_${i} = 0.0;`));
    writer.line(`if (column < ${writer.dim(columns)}) {`);
    writer.line(`for (var k = lane; k < ${factors.inner}; k += ${lanes}u) {`);
    writer.line(`let b = ${factors.b("k", "column")};`);
    rowNames.forEach((row, i) => writer.line(`s${p}_${i} += ${factors.a(row, "k")} * b;`));
    writer.line("}}");
    rowNames.forEach((_, i) => writer.line(`partial[${i * THREADS}u + slot * ${lanes}u + lane] = s${p}_${i};`));
    writer.line("workgroupBarrier();");
    const perThread = Math.ceil((width * rowsAtOnce) / THREADS);
    const sums = Array.from({ length: perThread }, (_, j) => {
      const name = `sum${p}_${j}`;
      writer.line(`var ${name} = 0.0;`);
      const place = `(thread + ${j * THREADS}u)`;
      writer.line(`if (${place} < ${width * rowsAtOnce}u) {`);
      writer.line(`let start = ${place} / ${width}u * ${THREADS}u + ${place} % ${width}u * ${lanes}u;`);
      writer.line(`for (var k = 0u; k < ${lanes}u; k++) { ${name} += partial[start + k]; } }`);
      return name;
    });
    if (p < products.length - 1) writer.line("workgroupBarrier();");
    return sums;
  });
  outputs[0].forEach((_, j) => {
    const place = writer.assign("u32", `thread + ${j * THREADS}u`);
    const row = writer.assign("u32", `first_row + ${place} / ${width}u`);
    const column = writer.assign("u32", `first_column + ${place} % ${width}u`);
    writer.line(
      `if (${place} < ${width * rowsAtOnce}u && ${row} < ${writer.dim(rows)} && ${column} < ${writer.dim(columns)}) {`,
    );
    writer.scoped(() =>
      writeStore(
        writer,
        context,
        [row, column],
        outputs.map((sums) => sums[j]),
      ),
    );
    writer.line("}");
  });
  const groups = [program.dim(batch), program.ceilDiv(rows, rowsAtOnce), program.ceilDiv(columns, width)];
  return program.createCall(writer, "product of few rows", THREADS, groups, { rows: program.dim(rows), upTo });
}

/** Each workgroup computes a tile from parts of the factors in shared memory, each thread 4 x 4 elements of it. */
function tileCall(context: ProductContext): KernelCall {
  const { program, products, rows, columns, batch } = context;
  const writer = new KernelWriter(program);
  const side = THREADS ** 0.5;
  const per = TILE / side;
  const pitch = TILE + 1;
  writer.declare(`var<workgroup> tile_a: array<f32, ${DEPTH * pitch}>;`);
  writer.declare(`var<workgroup> tile_b: array<f32, ${DEPTH * pitch}>;`);
  writer.line(`let column_groups = (${writer.dim(columns)} + ${TILE - 1}u) / ${TILE}u;`);
  writer.line(`let row_groups = (${writer.dim(rows)} + ${TILE - 1}u) / ${TILE}u;`);
  writer.line(`let batch = group / (column_groups * row_groups);`);
  writer.line(`let first_row = ((group / column_groups) % row_groups) * ${TILE}u;`);
  writer.line(`let first_column = (group % column_groups) * ${TILE}u;`);
  writer.line(`let tr = thread / ${side}u; let tc = thread % ${side}u;`);
  const each = (write: string) => writer.line(`for (var i = 0u; i < ${per}u; i++) { for (var j = 0u; j < ${per}u; j++) { ${write} } }`);
  products.forEach((product, p) => {
    const factors = writeFactors(writer, product);
    writer.line(`var s${p}: array<f32, ${per * per}>;`);
    writer.line(`for (var k0 = 0u; k0 < ${factors.inner}; k0 += ${DEPTH}u) {`);
    const load = (name: string, alongInner: boolean, first: string, size: Dim, code: (at: string) => string) => {
      writer.line(`for (var e = thread; e < ${TILE * DEPTH}u; e += ${THREADS}u) {`);
      const [outer, inner] = alongInner ? [`e / ${DEPTH}u`, `e % ${DEPTH}u`] : [`e % ${TILE}u`, `e / ${TILE}u`];
      writer.line(`let at = ${outer}; let depth = ${inner}; let k = k0 + depth; var value = 0.0;`);
      writer.line(`if (${first} + at < ${writer.dim(size)} && k < ${factors.inner}) { value = ${code(`(${first} + at)`)}; }`);
      writer.line(`${name}[depth * ${pitch}u + at] = value; }`);
    };
    load("tile_a", !product.product.transposeA, "first_row", rows, (at) => factors.a(at, "k"));
    load("tile_b", product.product.transposeB, "first_column", columns, (at) => factors.b("k", at));
    writer.line("workgroupBarrier();");
    writer.line(`for (var k = 0u; k < ${DEPTH}u; k++) {`);
    const vector = (name: string, first: string) =>
      Array.from({ length: per }, (_, i) => `${name}[k * ${pitch}u + ${first} + ${i * side}u]`).join(", ");
    writer.line(`let a = array<f32, ${per}>(${vector("tile_a", "tr")}); let b = array<f32, ${per}>(${vector("tile_b", "tc")});`);
    for (let i = 0; i < per; i++)
      for (let j = 0; j < per; j++) writer.line(`s${p}[${i * per + j}] += a[${i}] * b[${j}];`);
    writer.line("}");
    writer.line("workgroupBarrier(); }");
  });
  void each;
  writer.line(`for (var i = 0u; i < ${per}u; i++) { for (var j = 0u; j < ${per}u; j++) {`);
  writer.line(`let row = first_row + tr + i * ${side}u; let column = first_column + tc + j * ${side}u;`);
  writer.line(`if (row < ${writer.dim(rows)} && column < ${writer.dim(columns)}) {`);
  writer.scoped(() => {
    const sums = products.map((_, p) => writer.assign("f32", `s${p}[i * ${per}u + j]`));
    writeStore(writer, context, ["row", "column"], sums);
  });
  writer.line("} } }");
  const groups = [program.dim(batch), program.ceilDiv(rows, TILE), program.ceilDiv(columns, TILE)];
  return program.createCall(writer, "product", THREADS, groups);
}
