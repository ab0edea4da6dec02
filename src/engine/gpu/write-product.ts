import { mulDims, type Shape } from "../graph/dim.js";
import { listArguments, type Expression, type ValueView } from "./expression.js";
import { fewRowsCall } from "./few-rows-kernel.js";
import type { Product, ProductProgram, ProductSum } from "./product-parts.js";
import type { KernelCall } from "./program.js";
import { tileCall, type TileShape } from "./tile-kernel.js";

const SQUARE: TileShape = { rows: 64, columns: 64, depth: 16 };
/**
 * Tiles of few elements, for products with few columns or rows, such as those of adapters: there
 * are more of them, so that more workgroups share the terms.
 */
const NARROW: TileShape = { rows: 32, columns: 16, depth: 32 };
const FLAT: TileShape = { rows: 16, columns: 32, depth: 32 };

/** Columns or rows up to which tiles of few elements are used. */
const FEW = 32;

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
