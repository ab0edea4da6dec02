import type { OperationCase, OperationInput } from "../../src/engine/check-operation.js";
import { addDims, evaluateDim, mulDims, type Dim } from "../../src/engine/graph/dim.js";
import type { DType } from "../../src/engine/tensor/dtype.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";

export type { OperationCase };
export type InputSpec = OperationInput;
export type Sizes = Readonly<Record<string, number>>;
export type Dims = Readonly<Record<string, Dim>>;

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

export { addDims, mulDims };
