import { gatherRows, input, mul, scatterAddRows, type Dim, type Node } from "../../../engine/graph/index.js";
import { int32, tensor, type FloatTensor, type Tensor } from "../../../engine/tensor/index.js";
import type { NumberArray } from "./statistics.js";

/** Sums and means over the tokens of each sequence, repeated for its tokens: [selected]. */
export interface SequenceNodes {
  readonly sum: (x: Node) => Node;
  readonly mean: (x: Node) => Node;
}

/**
 * Declares the inputs "rows", the index of each token's sequence, and "inverseLengths". The tokens
 * of a sequence must be in the same micro-batch. Sums are scattered into [selected], since there
 * are at most as many sequences as tokens.
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

/** Returns the inputs of sequenceNodes for sequences of these lengths, without empty ones. */
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

/** Repeats each sequence's value for its tokens. */
export function repeatEach(values: Iterable<number>, lengths: readonly number[]): number[] {
  return Array.from(values).flatMap((value, i) => Array.from({ length: lengths[i] }, () => value));
}

/** Returns a per-token input of a loss. */
export function floatVector(values: NumberArray): FloatTensor {
  return tensor("float32", [values.length], Float32Array.from(values));
}
