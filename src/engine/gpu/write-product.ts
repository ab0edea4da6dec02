import { mulDims, type Dim, type Shape } from "../graph/dim.js";
import { broadcastStrides, listArguments, type Expression, type PendingProduct, type ValueView } from "./expression.js";
import { KernelWriter } from "./kernel-writer.js";
import { WORKGROUP_THREADS, type GpuNumber, type KernelCall } from "./program.js";

/** The part of a program builder that dispatches of products need. */
interface ProductProgram {
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

type Product = Extract<Expression, { kind: "product" }>;

const THREADS = WORKGROUP_THREADS;

/** Rows of a tile that a thread computes, of four columns. */
const TILE_ROWS_PER_THREAD = 8;

/**
 * Rows and columns of the tile that a workgroup computes, and terms that it holds in shared memory
 * at a time.
 */
const TILE = 64;
const DEPTH = 16;

/**
 * Rows up to which a workgroup computes few columns of all rows; more rows are computed in tiles.
 */
const FEW_ROWS = 32;

/**
 * Adds the dispatch that computes an expression over `shape` with matrix products, whose elements
 * it reads in order, into `target`. Products of few rows read each weight once; the others are
 * computed in tiles.
 */
export function writeProduct(
  program: ProductProgram,
  root: Expression,
  shape: Shape,
  products: readonly Product[],
  target: ValueView,
): void {
  const [{ product, shape: productShape }] = products;
  const sums = findSums(root, products);
  const [rows, columns] = productShape.slice(-2);
  const batch = mulDims(...productShape.slice(0, -2));
  const context = { program, root, shape, sums, target, rows, columns, batch };
  const isFewRows = typeof rows === "number" && rows <= FEW_ROWS;
  const calls: KernelCall[] = [];
  if (!product.transposeA && (typeof rows !== "number" || isFewRows)) {
    const rowsAtOnce = typeof rows === "number" ? [rows <= 1 ? 1 : rows <= 4 ? 4 : 8] : [1, 4, 8];
    for (const count of rowsAtOnce) calls.push(fewRowsCall(context, count, count < 8 ? count : FEW_ROWS));
  }
  if (product.transposeA || !isFewRows) calls.push(tileCall(context));
  program.addChoice(calls);
}

/** Products that are added up in one accumulator, and the expression of their sum. */
interface ProductSum {
  readonly sum: Expression;
  readonly products: readonly Product[];
}

/** Groups products of which an expression reads only the sum. */
function findSums(root: Expression, products: readonly Product[]): ProductSum[] {
  const sums: ProductSum[] = [];
  const visit = (x: Expression): void => {
    if (x.kind === "call" && x.isSum === true && x.args.every((arg) => arg.kind === "product")) {
      sums.push({ sum: x, products: x.args.filter((arg) => arg.kind === "product") });
    } else if (x.kind === "product") {
      sums.push({ sum: x, products: [x] });
    } else {
      listArguments(x).forEach(visit);
    }
  };
  visit(root);
  const isUnique = new Set(sums.flatMap((each) => each.products)).size === sums.flatMap((each) => each.products).length;
  return isUnique ? sums : products.map((product) => ({ sum: product, products: [product] }));
}

interface ProductContext {
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

function writeFactors(writer: KernelWriter, { product, shape }: Product): Factors {
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
function writeStore(
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

/** Each thread adds up part of the terms of one column for some rows. */
function fewRowsCall(context: ProductContext, rowsAtOnce: number, upTo: number): KernelCall {
  const { program, sums, rows, columns, batch } = context;
  const writer = new KernelWriter(program);
  const first = sums[0].products[0].product;
  const isInnerContiguous = first.transposeB;
  const lanes = isInnerContiguous ? 32 : 4;
  const width = THREADS / lanes;
  // Several terms at once, so that their loads overlap.
  const terms = isInnerContiguous ? 4 : 2;
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
  const rowNames = Array.from({ length: rowsAtOnce }, (_, i) =>
    writer.assign("u32", i === 0 ? "first_row" : `min(first_row + ${i}u, last_row)`),
  );
  const outputs = sums.map(({ products }, p) => {
    rowNames.forEach((_, i) => writer.line(`var s${p}_${i} = 0.0;`));
    for (const product of products) {
      const factors = writeFactors(writer, product);
      writer.line(`if (column < ${writer.dim(columns)}) {`);
      writer.line(`for (var k = lane * ${terms}u; k < ${factors.inner}; k += ${lanes * terms}u) {`);
      const { inner } = product.product;
      const isWhole = typeof inner === "number" && inner % terms === 0;
      for (let t = 0; t < terms; t++) {
        const k = t === 0 ? "k" : `k${t}`;
        if (t > 0) writer.line(`let ${k} = ${isWhole ? `k + ${t}u` : `min(k + ${t}u, ${factors.inner} - 1u)`};`);
        const b = factors.b(k, "column");
        writer.line(`let b${t} = ${isWhole || t === 0 ? b : `select(0.0, ${b}, k + ${t}u < ${factors.inner})`};`);
      }
      rowNames.forEach((row, i) => {
        const products = Array.from({ length: terms }, (_, t) => `${factors.a(row, t === 0 ? "k" : `k${t}`)} * b${t}`);
        writer.line(`s${p}_${i} += ${products.join(" + ")};`);
      });
      writer.line("}}");
    }
    rowNames.forEach((_, i) => writer.line(`partial[${i * THREADS}u + slot * ${lanes}u + lane] = s${p}_${i};`));
    writer.line("workgroupBarrier();");
    const perThread = Math.ceil((width * rowsAtOnce) / THREADS);
    const totals = Array.from({ length: perThread }, (_, j) => {
      const name = `sum${p}_${j}`;
      writer.line(`var ${name} = 0.0;`);
      const place = `(thread + ${j * THREADS}u)`;
      writer.line(`if (${place} < ${width * rowsAtOnce}u) {`);
      writer.line(`let start = ${place} / ${width}u * ${THREADS}u + ${place} % ${width}u * ${lanes}u;`);
      writer.line(`for (var k = 0u; k < ${lanes}u; k++) { ${name} += partial[start + k]; } }`);
      return name;
    });
    if (p < sums.length - 1) writer.line("workgroupBarrier();");
    return totals;
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
        outputs.map((totals) => totals[j]),
      ),
    );
    writer.line("}");
  });
  const groups = [program.dim(batch), program.ceilDiv(rows, rowsAtOnce), program.ceilDiv(columns, width)];
  return program.createCall(writer, "product of few rows", THREADS, groups, { rows: program.dim(rows), upTo });
}

/**
 * Each workgroup computes a tile from parts of the factors in shared memory, four neighboring
 * elements in a vector.
 */
function tileCall(context: ProductContext): KernelCall {
  const { program, sums, rows, columns, batch } = context;
  const writer = new KernelWriter(program);
  const vectors = TILE / 4;
  writer.declare(`var<workgroup> tile_a: array<vec4<f32>, ${DEPTH * vectors}>;`);
  writer.declare(`var<workgroup> tile_b: array<vec4<f32>, ${DEPTH * vectors}>;`);
  writer.line(`let column_groups = (${writer.dim(columns)} + ${TILE - 1}u) / ${TILE}u;`);
  writer.line(`let row_groups = (${writer.dim(rows)} + ${TILE - 1}u) / ${TILE}u;`);
  writer.line(`let batch = group / (column_groups * row_groups);`);
  writer.line(`let first_row = ((group / column_groups) % row_groups) * ${TILE}u;`);
  writer.line(`let first_column = (group % column_groups) * ${TILE}u;`);
  writer.line(`let tr = thread / ${vectors}u; let tc = thread % ${vectors}u;`);
  const threadRows = Array.from({ length: TILE_ROWS_PER_THREAD }, (_, i) => i);
  sums.forEach(({ products }, p) => {
    for (const i of threadRows) writer.line(`var s${p}_${i} = vec4<f32>();`);
    for (const product of products) writeTileLoop(writer, context, product, `s${p}_`);
  });
  for (const i of threadRows) {
    const row = writer.assign("u32", `first_row + tr * ${TILE_ROWS_PER_THREAD}u + ${i}u`);
    writer.line(`if (${row} < ${writer.dim(rows)}) { for (var j = 0u; j < 4u; j++) {`);
    writer.line(`let column = first_column + tc * 4u + j;`);
    writer.line(`if (column < ${writer.dim(columns)}) {`);
    writer.scoped(() => {
      const totals = sums.map((_, p) => writer.assign("f32", `s${p}_${i}[j]`));
      writeStore(writer, context, [row, "column"], totals);
    });
    writer.line("} } }");
  }
  const groups = [program.dim(batch), program.ceilDiv(rows, TILE), program.ceilDiv(columns, TILE)];
  return program.createCall(writer, "product", THREADS, groups);
}

/** Adds a product's terms to the variables whose names begin with `sum`. */
function writeTileLoop(writer: KernelWriter, { rows, columns }: ProductContext, product: Product, sum: string): void {
  const vectors = TILE / 4;
  const factors = writeFactors(writer, product);
  const { transposeA, transposeB } = product.product;
  writer.line(`for (var k0 = 0u; k0 < ${factors.inner}; k0 += ${DEPTH}u) {`);
  const load = (tile: string, alongInner: boolean, first: string, size: Dim, code: (at: string) => string) => {
    writer.line(`for (var e = thread; e < ${vectors * DEPTH}u; e += ${THREADS}u) {`);
    const [outer, inner] = alongInner ? [`e / ${DEPTH}u`, `e % ${DEPTH}u`] : [`e % ${vectors}u`, `e / ${vectors}u`];
    writer.line(
      `let at = ${first} + (${outer}) * 4u; let depth = ${inner}; let k = k0 + depth; var value = vec4<f32>();`,
    );
    writer.line(`if (k < ${factors.inner}) {`);
    for (let i = 0; i < 4; i++)
      writer.line(`if (at + ${i}u < ${writer.dim(size)}) { value.${"xyzw"[i]} = ${code(`(at + ${i}u)`)}; }`);
    writer.line(`} ${tile}[depth * ${vectors}u + ${outer}] = value; }`);
  };
  load("tile_a", !transposeA, "first_row", rows, (at) => factors.a(at, "k"));
  load("tile_b", transposeB, "first_column", columns, (at) => factors.b("k", at));
  writer.line("workgroupBarrier();");
  writer.line(`for (var k = 0u; k < ${DEPTH}u; k++) {`);
  writer.line(`let b = tile_b[k * ${vectors}u + tc];`);
  for (let half = 0; half < TILE_ROWS_PER_THREAD / 4; half++) {
    writer.line(`let a${half} = tile_a[k * ${vectors}u + tr * ${TILE_ROWS_PER_THREAD / 4}u + ${half}u];`);
    for (let i = 0; i < 4; i++) writer.line(`${sum}${half * 4 + i} += a${half}.${"xyzw"[i]} * b;`);
  }
  writer.line("}");
  writer.line("workgroupBarrier(); }");
}
