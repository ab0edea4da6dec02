import type { TokenBatch } from "../models/graphs/index.js";
import type { TrainingDatum } from "./wire/forward-backward.js";

/** A sequence whose last tokens are targets: each selected token is at an index of one sequence. */
export interface TargetSequence {
  readonly tokens: readonly number[];
  /** Indices of the batch's selected tokens, by their index in `tokens`. */
  readonly selected: ReadonlyMap<number, number>;
}

/**
 * Unpacks a batch to whole sequences: one for each row, and one for each selected token that the
 * row does not have, such as an alternative to its token. A service has no use for what follows the
 * last selected token.
 */
export function unpackSequences({ groups, selected }: Pick<TokenBatch, "groups" | "selected">): TargetSequence[] {
  const rows = new Map<string, { tokens: number[]; selected: Map<number, number> }>();
  const others = new Map<string, TargetSequence>();
  const sequences: TargetSequence[] = [];
  selected.forEach(({ group, row, index, target }, i) => {
    const { prefix, rows: groupRows } = groups[group];
    const key = `${group},${row}`;
    let sequence = rows.get(key);
    if (sequence === undefined) {
      sequence = { tokens: [...prefix, ...(groupRows[row] ?? [])], selected: new Map() };
      rows.set(key, sequence);
      sequences.push(sequence);
    }
    const position = prefix.length + index;
    const token = target ?? sequence.tokens[position];
    if (position === sequence.tokens.length) sequence.tokens.push(token);
    if (sequence.tokens[position] === token && !sequence.selected.has(position)) {
      sequence.selected.set(position, i);
      return;
    }
    const other = { tokens: [...sequence.tokens.slice(0, position), token], selected: new Map([[position, i]]) };
    const otherKey = `${key},${position},${token},${others.size}`;
    others.set(otherKey, other);
    sequences.push(other);
  });
  return sequences.filter((sequence) => sequence.selected.size > 0).map(cutAfterLast);
}

function cutAfterLast({ tokens, selected }: TargetSequence): TargetSequence {
  return { selected, tokens: tokens.slice(0, Math.max(...selected.keys()) + 1) };
}

/**
 * Returns the data of a training pass; each further input has a value for each selected token of a
 * sequence, and 0 elsewhere.
 */
export function toData(
  sequences: readonly TargetSequence[],
  inputs: Readonly<Record<string, (selected: number, sequence: TargetSequence) => number>>,
): readonly TrainingDatum[] {
  return sequences.map((sequence) => {
    const { tokens, selected } = sequence;
    const length = tokens.length - 1;
    const tensors = Object.entries(inputs).map(([name, valueOf]) => {
      const data = new Float32Array(length);
      for (const [position, i] of selected) data[position - 1] = valueOf(i, sequence);
      return [name, { dtype: "float32", shape: [length], data }] as const;
    });
    return {
      tokens: tokens.slice(0, -1),
      lossFnInputs: {
        target_tokens: { dtype: "int64", shape: [length], data: tokens.slice(1) },
        ...Object.fromEntries(tensors),
      },
    };
  });
}
