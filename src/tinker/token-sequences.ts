import type { TokenBatch } from "../models/graphs/index.js";
import type { TrainingDatum } from "./wire/forward-backward.js";
import { toSparse, type WireTensor } from "./wire/wire-tensor.js";

/** A token whose log-probability is wanted. */
export interface Target {
  /** Number of tokens before it. */
  readonly position: number;
  readonly token: number;
  /** Index of the batch's selected token. */
  readonly index: number;
}

/** A sequence and its targets, the last of which is at its end. */
export interface TargetSequence {
  readonly tokens: readonly number[];
  readonly targets: readonly Target[];
}

/** How many targets a service takes of a position, and whether it takes lists of them. */
export type TargetSupport = "one" | "dense" | "sparse";

/**
 * Unpacks a batch to whole sequences, one for each row. A service has no use for what follows the
 * last selected token. One that takes one target of a position gets a sequence for each selected
 * token that the row does not have, such as an alternative to its token, and copies of a row whose
 * tokens are selected several times.
 */
export function unpackSequences(
  { groups, selected }: Pick<TokenBatch, "groups" | "selected">,
  support: TargetSupport = "one",
): TargetSequence[] {
  const rows = new Map<string, { tokens: number[]; targets: Target[]; counts: Map<number, number> }>();
  const sequences: { tokens: number[]; targets: Target[] }[] = [];
  const openRow = (group: number, row: number, copy: number) => {
    const key = `${group},${row},${copy}`;
    const { prefix, rows: groupRows } = groups[group];
    const opened = rows.get(key) ?? {
      tokens: [...prefix, ...(groupRows[row] ?? [])],
      targets: [],
      counts: new Map<number, number>(),
    };
    if (!rows.has(key)) sequences.push(opened);
    rows.set(key, opened);
    return opened;
  };
  selected.forEach(({ group, row, index: rowIndex, target }, index) => {
    const { tokens, targets, counts } = openRow(group, row, 0);
    const position = groups[group].prefix.length + rowIndex;
    const token = target ?? tokens[position];
    if (position === tokens.length) tokens.push(token);
    if (support !== "one") {
      targets.push({ position, token, index });
    } else if (tokens[position] === token) {
      const copy = counts.get(position) ?? 0;
      counts.set(position, copy + 1);
      const used = openRow(group, row, copy);
      if (position === used.tokens.length) used.tokens.push(token);
      used.targets.push({ position, token, index });
    } else {
      sequences.push({ tokens: [...tokens.slice(0, position), token], targets: [{ position, token, index }] });
    }
  });
  return sequences
    .filter(({ targets }) => targets.length > 0)
    .map(({ tokens, targets }) => ({
      tokens: tokens.slice(0, 1 + Math.max(...targets.map(({ position }) => position))),
      targets,
    }));
}

/** An input of a loss: a value for each target, and 0 elsewhere. */
type LossInput = (index: number, sequence: TargetSequence) => number;

/**
 * Returns the data of a training pass. Targets of a sequence that has several at a position are a
 * matrix, as lists where that is smaller and the service takes them.
 */
export function toData(
  sequences: readonly TargetSequence[],
  inputs: Readonly<Record<string, LossInput>>,
  support: TargetSupport = "one",
): readonly TrainingDatum[] {
  return sequences.map((sequence) => {
    const { tokens, targets } = sequence;
    const length = tokens.length - 1;
    const cells = placeTargets(sequence);
    const width = 1 + Math.max(0, ...cells.map(({ column }) => column));
    const shape = width === 1 ? [length] : [length, width];
    // Elsewhere the next token is a target without weight, which a service computes in any case.
    const ids = Array.from({ length: length * width }, (_, cell) => tokens[1 + Math.floor(cell / width)]);
    targets.forEach(({ token }, i) => (ids[cells[i].row * width + cells[i].column] = token));
    const tensors = Object.entries(inputs).map(([name, valueOf]) => {
      const data = new Float32Array(length * width);
      targets.forEach(({ index }, i) => (data[cells[i].row * width + cells[i].column] = valueOf(index, sequence)));
      return [name, { dtype: "float32", shape, data }] as const;
    });
    const lossFnInputs: Record<string, WireTensor> = {
      target_tokens: { dtype: "int64", shape, data: ids },
      ...Object.fromEntries(tensors),
    };
    const isSparse = width > 1 && support === "sparse" && 2 * targets.length + length < width * length;
    return {
      tokens: tokens.slice(0, -1),
      lossFnInputs: isSparse
        ? Object.fromEntries(Object.entries(lossFnInputs).map(([name, each]) => [name, toSparse(each, cells)]))
        : lossFnInputs,
    };
  });
}

/** Reads the value of each target from the matrices of a training pass. @returns [selected] */
export function readTargets(
  sequences: readonly TargetSequence[],
  outputs: readonly (WireTensor | undefined)[],
  count: number,
): Float32Array | undefined {
  const values = new Float32Array(count);
  for (const [i, sequence] of sequences.entries()) {
    const cells = placeTargets(sequence);
    const width = 1 + Math.max(0, ...cells.map(({ column }) => column));
    const data = outputs.at(i)?.data;
    if (data?.length !== (sequence.tokens.length - 1) * width) return undefined;
    sequence.targets.forEach(({ index }, t) => (values[index] = data[cells[t].row * width + cells[t].column]));
  }
  return values;
}

/** Returns the cell of each target: the row of its position, and the next column that is free. */
function placeTargets({ targets }: TargetSequence): { readonly row: number; readonly column: number }[] {
  const widths = new Map<number, number>();
  return targets.map(({ position }) => {
    const column = widths.get(position) ?? 0;
    widths.set(position, column + 1);
    return { row: position - 1, column };
  });
}
