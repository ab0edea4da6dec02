import { invalidArgument, LlamaGymError } from "../../core/errors.js";

/**
 * A dimension whose value is known only at run time: a polynomial with integer coefficients in
 * named sizes, such as "2*batch*tokens+prefix". Stored in canonical form, so equal dimensions have
 * equal keys.
 */
export class SymbolicDim {
  /** Coefficients by monomial (names joined by "*", "" for the constant); none is zero. */
  readonly terms: ReadonlyMap<string, number>;
  readonly key: string;

  constructor(terms: ReadonlyMap<string, number>) {
    const sorted = [...terms].filter(([, c]) => c !== 0).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.terms = new Map(sorted);
    this.key = sorted.map(([name, c]) => (name === "" ? `${c}` : c === 1 ? name : `${c}*${name}`)).join("+");
  }

  /** Name in ONNX files. */
  get label(): string {
    return this.key.replaceAll(POSITIVE_SUFFIX, "");
  }

  toString(): string {
    return this.key;
  }
}

/** Dimension: a constant or a polynomial in named sizes. */
export type Dim = number | SymbolicDim;
/** Dimensions of a tensor, outermost first. */
export type Shape = readonly Dim[];

/** Suffix of the names of dimensions that are never 0. */
const POSITIVE_SUFFIX = " (at least 1)";

/** Creates a named dimension that is never 0, which saves graphs the handling of empty values. */
export function positiveDim(name: string): SymbolicDim {
  return dim(`${name}${POSITIVE_SUFFIX}`);
}

/** Whether a dimension may be 0 at run time. */
export function canBeEmpty(dim: Dim): boolean {
  if (typeof dim === "number") return dim === 0;
  const isPositive = (monomial: string) =>
    monomial.split("*").every((name) => name === "" || name.endsWith(POSITIVE_SUFFIX));
  const terms = [...dim.terms];
  return terms.some(([, coefficient]) => coefficient < 0) || !terms.some(([monomial]) => isPositive(monomial));
}

/**
 * Creates a named dimension, whose value comes from the inputs of each run. It may be 0 and never
 * broadcasts. @throws INVALID_ARGUMENT for an invalid name.
 */
export function dim(name: string): SymbolicDim {
  if (!/^[^\d*+][^*+]*$/.test(name)) {
    const expected = 'it may not contain "*" or "+" or start with a digit';
    throw invalidArgument(`"${name}" is not a valid dimension name: ${expected}.`);
  }
  return new SymbolicDim(new Map([[name, 1]]));
}

function getTerms(dim: Dim): ReadonlyMap<string, number> {
  return typeof dim === "number" ? new Map([["", dim]]) : dim.terms;
}

function simplifyDim(terms: Map<string, number>): Dim {
  const dim = new SymbolicDim(terms);
  if (dim.terms.size === 0) return 0;
  if (dim.terms.size === 1 && dim.terms.has("")) return dim.terms.get("")!;
  return dim;
}

/** Adds dimensions. */
export function addDims(...dims: readonly Dim[]): Dim {
  const sum = new Map<string, number>();
  for (const dim of dims) for (const [name, c] of getTerms(dim)) sum.set(name, (sum.get(name) ?? 0) + c);
  return simplifyDim(sum);
}

/** Multiplies dimensions. */
export function mulDims(...dims: readonly Dim[]): Dim {
  let product = new Map<string, number>([["", 1]]);
  for (const dim of dims) {
    const next = new Map<string, number>();
    for (const [leftName, left] of product) {
      for (const [rightName, right] of getTerms(dim)) {
        const name = [...leftName.split("*"), ...rightName.split("*")]
          .filter((part) => part !== "")
          .sort()
          .join("*");
        next.set(name, (next.get(name) ?? 0) + left * right);
      }
    }
    product = next;
  }
  return simplifyDim(product);
}

/** Subtracts the second dimension from the first. */
export function subDims(a: Dim, b: Dim): Dim {
  return addDims(a, mulDims(-1, b));
}

/** Whether two dimensions are equal for all sizes. */
export function sameDim(a: Dim, b: Dim): boolean {
  if (typeof a === "number" || typeof b === "number") return a === b;
  return a.key === b.key;
}

/** Whether two shapes are equal in every dimension. */
export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dim, i) => sameDim(dim, b[i]));
}

/** Formats a shape for messages. */
export function formatShape(shape: Shape): string {
  return `[${shape.map(String).join(", ")}]`;
}

/** Broadcasts shapes as NumPy does. Dimensions of size 1 stretch; named dimensions do not. */
export function broadcastShapes(a: Shape, b: Shape): Shape {
  const rank = Math.max(a.length, b.length);
  const result: Dim[] = [];
  for (let i = 0; i < rank; i++) {
    const left = a[a.length - rank + i] ?? 1;
    const right = b[b.length - rank + i] ?? 1;
    if (sameDim(left, right) || right === 1) result.push(left);
    else if (left === 1) result.push(right);
    else {
      throw new LlamaGymError(
        "SHAPE_MISMATCH",
        `Shapes ${formatShape(a)} and ${formatShape(b)} do not broadcast together.`,
      );
    }
  }
  return result;
}

/** Evaluates a dimension for given sizes. */
export function evaluateDim(dim: Dim, sizes: ReadonlyMap<string, number>): number {
  if (typeof dim === "number") return dim;
  let total = 0;
  for (const [monomial, coefficient] of dim.terms) {
    let product = coefficient;
    for (const name of monomial.split("*")) {
      if (name === "") continue;
      const size = sizes.get(name);
      if (size === undefined) throw invalidArgument(`Dimension "${name}" has no value.`);
      product *= size;
    }
    total += product;
  }
  return total;
}
