import type { Dim } from "../graph/dim.js";
import { KernelWriter } from "./kernel-writer.js";
import { writeFactors, writeStore, type Product, type ProductContext } from "./product-parts.js";
import { WORKGROUP_THREADS as THREADS, type KernelCall } from "./program.js";

/**
 * Rows and columns of the tile that a workgroup computes, and terms of which it holds the factors
 * in shared memory at a time.
 */
export interface TileShape {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
}

/** Vectors of four elements in shared memory, for the factors of tiles of any shape. */
const TILE_VECTORS = 512;

/**
 * Each workgroup computes a tile from parts of the factors in shared memory, four neighboring
 * elements in a vector.
 */
export function tileCall(context: ProductContext, tile: TileShape, upTo?: number): KernelCall {
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
