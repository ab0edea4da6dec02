import { KernelWriter } from "./kernel-writer.js";
import { writeFactors, writeStore, type ProductContext } from "./product-parts.js";
import { WORKGROUP_THREADS as THREADS, type KernelCall } from "./program.js";

/** Each thread adds up part of the terms of one column for some rows. */
export function fewRowsCall(context: ProductContext, rowsAtOnce: number, upTo: number): KernelCall {
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
