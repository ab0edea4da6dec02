import { gatherRows, input, mul, scatterAddRows, type Dim, type Node } from "../../../engine/graph/index.js";
import { int32, tensor, type FloatTensor, type Tensor } from "../../../engine/tensor/tensor.js";
import type { NumberArray } from "./statistics.js";

/** Sums and means over the tokens of each sequence, given to each of its tokens: [selected]. */
export interface SequenceNodes {
  readonly sum: (x: Node) => Node;
  readonly mean: (x: Node) => Node;
}

/**
 * Declares the inputs "rows", the number of each token's sequence, and "inverseLengths". All tokens of a sequence must be in one
 * run. The sums lie in as many places as there are tokens, which are at least as many as sequences.
 */
export function sequenceNodes(selected: Dim): SequenceNodes {
  const rows = input("rows", "int32", [selected]);
  const sum = (x: Node) => gatherRows(scatterAddRows(x, rows, selected), rows);
  return { sum, mean: (x) => mul(sum(x), input("inverseLengths", "float32", [selected])) };
}

export interface SequenceInputs {
  readonly rows: Tensor<"int32">;
  readonly inverseLengths: FloatTensor;
}

/** The inputs of sequenceNodes for sequences of these lengths; empty ones are passed over. */
export function sequenceInputs(lengths: readonly number[]): SequenceInputs {
  const nonEmpty = lengths.filter((length) => length > 0);
  return {
    rows: int32(repeatEach(nonEmpty.keys(), nonEmpty)),
    inverseLengths: floatVector(
      repeatEach(
        nonEmpty.map((length) => 1 / length),
        nonEmpty,
      ),
    ),
  };
}

/** A sequence's value for each of its tokens. */
export function repeatEach(values: Iterable<number>, lengths: readonly number[]): number[] {
  return Array.from(values).flatMap((value, i) => Array.from({ length: lengths[i] }, () => value));
}

/** A loss's input of one number for each trained token. */
export function floatVector(values: NumberArray): FloatTensor {
  return tensor("float32", [values.length], Float32Array.from(values));
}
