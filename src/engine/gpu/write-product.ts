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

/**
 * Rows and columns of the tile that a workgroup computes, and terms of which it holds the factors
 * in shared memory at a time.
 */
interface TileShape {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
}

const SQUARE: TileShape = { rows: 64, columns: 64, depth: 16 };
/**
 * Tiles of few elements, for products with few columns or rows, such as those of adapters: there
 * are more of them, so that more workgroups share the terms.
 */
const NARROW: TileShape = { rows: 32, columns: 16, depth: 32 };
const FLAT: TileShape = { rows: 16, columns: 32, depth: 32 };

/** Columns or rows up to which tiles of few elements are used. */
const FEW = 32;

/** Vectors of four elements in shared memory, for the factors of tiles of any shape. */
const TILE_VECTORS = 512;

/**
 * Rows up to which a workgroup computes few columns of several rows, for products with few and with
 * many columns; more rows are computed in tiles.
 */
const FEW_ROWS = 32;
const FEW_ROWS_OF_MANY_COLUMNS = 8;
const MANY_COLUMNS = 1024;

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
  const isFixed = typeof rows === "number";
  const isWide = typeof columns === "number" && columns >= MANY_COLUMNS;
  const fewRows = product.transposeA ? 0 : isWide ? FEW_ROWS_OF_MANY_COLUMNS : FEW_ROWS;
  const calls: KernelCall[] = [];
  if (!product.transposeA && (!isFixed || rows <= fewRows)) {
    const rowsAtOnce = isFixed ? [rows <= 1 ? 1 : rows <= 4 ? 4 : 8] : [1, 4, 8];
    for (const count of rowsAtOnce) calls.push(fewRowsCall(context, count, count < 8 ? count : fewRows));
  }
  if (!isFixed || rows > fewRows) {
    if (product.transposeA && isFixed && rows <= FEW) calls.push(tileCall(context, FLAT));
    else if (typeof columns === "number" && columns <= FEW) calls.push(tileCall(context, NARROW));
    else {
      if (isWide && !product.transposeA) calls.push(tileCall(context, NARROW, FEW));
      calls.push(tileCall(context, SQUARE));
    }
  }
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
function tileCall(context: ProductContext, tile: TileShape, upTo?: number): KernelCall {
  const { program, sums, rows, columns, batch } = context;
  const writer = new KernelWriter(program);
  const vectors = tile.columns / 4;
  const rowsPerThread = (tile.rows * vectors) / THREADS;
  writer.declare(`var<workgroup> tiles: array<vec4<f32>, ${TILE_VECTORS}>;`);
  writer.line(`let column_groups = (${writer.dim(columns)} + ${tile.columns - 1}u) / ${tile.columns}u;`);
  writer.line(`let row_groups = (${writer.dim(rows)} + ${tile.rows - 1}u) / ${tile.rows}u;`);
  writer.line(`let batch = group / (column_groups * row_groups);`);
  writer.line(`let first_row = ((group / column_groups) % row_groups) * ${tile.rows}u;`);
  writer.line(`let first_column = (group % column_groups) * ${tile.columns}u;`);
  writer.line(`let tr = thread / ${vectors}u * ${rowsPerThread}u; let tc = thread % ${vectors}u;`);
  const threadRows = Array.from({ length: rowsPerThread }, (_, i) => i);
  sums.forEach(({ products }, p) => {
    for (const i of threadRows) writer.line(`var s${p}_${i} = vec4<f32>();`);
    for (const product of products) writeTileLoop(writer, context, product, tile, `s${p}_`);
  });
  for (const i of threadRows) {
    const row = writer.assign("u32", `first_row + tr + ${i}u`);
    writer.line(`if (${row} < ${writer.dim(rows)}) { for (var j = 0u; j < 4u; j++) {`);
    writer.line(`let column = first_column + tc * 4u + j;`);
    writer.line(`if (column < ${writer.dim(columns)}) {`);
    writer.scoped(() => {
      const totals = sums.map((_, p) => writer.assign("f32", `s${p}_${i}[j]`));
      writeStore(writer, context, [row, "column"], totals);
    });
    writer.line("} } }");
  }
  const groups = [program.dim(batch), program.ceilDiv(rows, tile.rows), program.ceilDiv(columns, tile.columns)];
  const range = upTo === undefined ? {} : { rows: program.dim(rows), upTo };
  return program.createCall(writer, "product", THREADS, groups, range);
}

/** One factor's part of a tile. */
interface TileSide {
  /** First vector in shared memory. */
  readonly start: number;
  readonly length: number;
  /** Whether neighbors along the terms are neighbors in memory. */
  readonly isAlongTerms: boolean;
  readonly first: string;
  readonly size: Dim;
  readonly load: (at: string, k: string) => string;
}

/**
 * Adds a product's terms to the variables whose names begin with `sum`. The next part of the
 * factors is loaded while the sums of this one are computed, so that the loads' latency is hidden.
 */
function writeTileLoop(
  writer: KernelWriter,
  { rows, columns }: ProductContext,
  product: Product,
  tile: TileShape,
  sum: string,
): void {
  const factors = writeFactors(writer, product);
  const { transposeA, transposeB, inner } = product.product;
  const [vectorsA, vectorsB] = [tile.rows / 4, tile.columns / 4];
  const startB = tile.depth * vectorsA;
  const sides: TileSide[] = [
    {
      start: 0,
      length: tile.rows,
      isAlongTerms: !transposeA,
      first: "first_row",
      size: rows,
      load: (at, k) => factors.a(at, k),
    },
    {
      start: startB,
      length: tile.columns,
      isAlongTerms: transposeB,
      first: "first_column",
      size: columns,
      load: (at, k) => factors.b(k, at),
    },
  ];
  writer.line("{");
  const isWhole = typeof inner === "number" && inner % tile.depth === 0;
  const parts = sides.flatMap((side, s) => {
    const vectors = side.length / 4;
    const isFull = typeof side.size === "number" && side.size % side.length === 0;
    return Array.from({ length: (vectors * tile.depth) / THREADS }, (_, e) => {
      const name = `${"ab"[s]}${e}`;
      const place = `(thread + ${e * THREADS}u)`;
      const [vector, depth] = side.isAlongTerms
        ? [`${place} / ${tile.depth}u`, `${place} % ${tile.depth}u`]
        : [`${place} % ${vectors}u`, `${place} / ${vectors}u`];
      writer.line(`let ${name}_vector = ${vector}; let ${name}_depth = ${depth}; var ${name}: vec4<f32>;`);
      // Beyond the edge, its element is loaded again, as nothing reads the sum.
      const at = Array.from({ length: 4 }, (_, i) => {
        const element = `${side.first} + ${name}_vector * 4u + ${i}u`;
        return writer.assign("u32", isFull ? element : `min(${element}, ${writer.dim(side.size)} - 1u)`);
      });
      const fetch = (start: string) => {
        writer.line(`{ let k = ${start} + ${name}_depth;`);
        if (!isWhole) writer.line(`let within = min(k, ${factors.inner} - 1u);`);
        const value = `vec4<f32>(${at.map((each) => side.load(each, isWhole ? "k" : "within")).join(", ")})`;
        writer.line(`${name} = ${isWhole ? value : `select(vec4<f32>(), ${value}, k < ${factors.inner})`}; }`);
      };
      const keep = () => writer.line(`tiles[${side.start}u + ${name}_depth * ${vectors}u + ${name}_vector] = ${name};`);
      return { fetch, keep };
    });
  });
  parts.forEach(({ fetch }) => fetch("0u"));
  writer.line(`for (var k0 = 0u; k0 < ${factors.inner}; k0 += ${tile.depth}u) {`);
  parts.forEach(({ keep }) => keep());
  writer.line("workgroupBarrier();");
  writer.line(`if (k0 + ${tile.depth}u < ${factors.inner}) {`);
  parts.forEach(({ fetch }) => fetch(`k0 + ${tile.depth}u`));
  writer.line("}");
  writer.line(`for (var k = 0u; k < ${tile.depth}u; k++) {`);
  writer.line(`let b = tiles[${startB}u + k * ${vectorsB}u + tc];`);
  const rowsPerThread = (tile.rows * vectorsB) / THREADS;
  if (rowsPerThread === 1) {
    writer.line(`${sum}0 += tiles[k * ${vectorsA}u + tr / 4u][tr % 4u] * b;`);
  } else {
    for (let vector = 0; vector < rowsPerThread / 4; vector++) {
      writer.line(`let a${vector} = tiles[k * ${vectorsA}u + tr / 4u + ${vector}u];`);
      for (let i = 0; i < 4; i++) writer.line(`${sum}${vector * 4 + i} += a${vector}.${"xyzw"[i]} * b;`);
    }
  }
  writer.line("}");
  writer.line("workgroupBarrier(); } }");
}
