import { addDims, evaluateDim, mulDims, dim, type Dim } from "../../src/engine/graph/dim.js";
import type { Node } from "../../src/engine/graph/node.js";
import type { DType } from "../../src/engine/tensor/dtype.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";
import { count, type PlainArray } from "./plain.js";

export type Sizes = Readonly<Record<string, number>>;
export type Dims = Readonly<Record<string, Dim>>;

export interface InputSpec {
  readonly dtype: DType;
  readonly shape: readonly Dim[];
  /** Fills a value of so many elements. */
  readonly values: (random: RandomStream, count: number, sizes: Sizes) => number[];
  /** A frozen weight that lies outside the graph, instead of an input of each run. */
  readonly frozen?: boolean;
}

/** One use of an operation, told in three ways: its graph, the same in plain arithmetic, and where gradients flow. */
export interface OperationCase {
  readonly title: string;
  /** Values of the named dimensions; each graph is made with static dimensions and once with named ones for all of these. */
  readonly sizes: readonly Sizes[];
  readonly inputs: (dims: Dims) => Readonly<Record<string, InputSpec>>;
  readonly build: (inputs: Readonly<Record<string, Node>>, dims: Dims) => Node | readonly Node[];
  readonly reference: (
    inputs: Readonly<Record<string, PlainArray>>,
    sizes: Sizes,
  ) => PlainArray | readonly PlainArray[];
  /** Inputs whose gradient is compared with finite differences of the reference; through all others none may flow. */
  readonly differentiable: readonly string[];
  /** What is differentiated instead of the reference, for operations whose gradient is not that of their value. */
  readonly gradientReference?: OperationCase["reference"];
  /** Relative error allowed; float32 rounding by default. */
  readonly tolerance?: number;
}

export const makeSymbolicDims = (sizes: Sizes): Dims =>
  Object.fromEntries(Object.keys(sizes).map((name) => [name, dim(name)]));

/** Sizes 1, 3, 5 and 7, and no rows. */
export const matrixSizes: readonly Sizes[] = [
  { rows: 3, columns: 5 },
  { rows: 1, columns: 7 },
  { rows: 5, columns: 1 },
  { rows: 0, columns: 3 },
];

/** Normally distributed numbers. */
export function float(shape: readonly Dim[], scale = 1): InputSpec {
  return { dtype: "float32", shape, values: (random, n) => fill(n, () => random.normal() * scale) };
}

/** Numbers from low to high. */
export function between(shape: readonly Dim[], low: number, high: number): InputSpec {
  return { dtype: "float32", shape, values: (random, n) => fill(n, () => low + (high - low) * random.random()) };
}

/** Numbers that keep a distance from zero, where a function has a kink. */
export function awayFromZero(shape: readonly Dim[]): InputSpec {
  const value = (random: RandomStream) => (random.random() < 0.5 ? -1 : 1) * (0.1 + random.random());
  return { dtype: "float32", shape, values: (random, n) => fill(n, () => value(random)) };
}

/** Integers from 0 up to (and without) a bound; the bound may be a named dimension. */
export function ids(shape: readonly Dim[], bound: Dim, dtype: "int32" | "int64" = "int32"): InputSpec {
  return {
    dtype,
    shape,
    values: (random, n, sizes) => {
      const limit = evaluateDim(bound, new Map(Object.entries(sizes)));
      return fill(n, () => Math.floor(random.random() * limit));
    },
  };
}

export function integers(shape: readonly Dim[], dtype: DType, low: number, high: number): InputSpec {
  return { dtype, shape, values: (random, n) => fill(n, () => low + Math.floor(random.random() * (high - low + 1))) };
}

export function fixed(shape: readonly Dim[], values: readonly number[], dtype: DType = "float32"): InputSpec {
  return { dtype, shape, values: () => [...values] };
}

/** The elements in order: 0, 1, 2, ... so that a misplaced one shows. */
export function sequence(shape: readonly Dim[], dtype: DType = "float32"): InputSpec {
  return { dtype, shape, values: (_, n) => fill(n, (i) => i + 1) };
}

function fill(n: number, value: (i: number) => number): number[] {
  return Array.from({ length: n }, (_, i) => value(i));
}

export function evaluateShape(shape: readonly Dim[], sizes: Sizes): number[] {
  const known = new Map(Object.entries(sizes));
  return shape.map((dim) => evaluateDim(dim, known));
}

export { addDims, count, mulDims };
