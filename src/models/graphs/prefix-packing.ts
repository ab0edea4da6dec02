import { sharedPrefixLength, commonPrefixLength, type PrefixGroup } from "./sequence-batch.js";

/** Token sequences laid out for one forward pass: each distinct beginning is computed as few times as it pays. */
export interface PackedSequences {
  readonly groups: readonly PrefixGroup[];
  /** Where each given sequence is found; it may be the beginning of a longer one. */
  readonly positions: readonly { readonly group: number; readonly row: number; readonly prefix: number }[];
}

/** Different splits into groups that are looked at; more would only cost time. */
const MAX_SPLITS = 16;

/**
 * Lays sequences out in groups of rows behind a shared prefix. A sequence that is the beginning of another is part of that row;
 * the number of groups is what needs the least work for a model of this hidden size.
 */
export function packSharedPrefixes(sequences: readonly (readonly number[])[], hiddenSize: number): PackedSequences {
  const order = sequences.map((_, i) => i).sort((a, b) => compareTokens(sequences[a], sequences[b]));
  const rows: (readonly number[])[] = [];
  const rowIndices: number[] = [];
  // From the end of the order on, whatever begins a row stands directly behind it.
  for (let i = order.length - 1; i >= 0; i--) {
    const sequence = sequences[order[i]];
    const last = rows.at(-1);
    if (last === undefined || sharedPrefixLength(sequence, last) < sequence.length) rows.push(sequence);
    rowIndices[order[i]] = rows.length - 1;
  }
  const commonLengths = rows.slice(1).map((row, i) => sharedPrefixLength(rows[i], row));
  const splits = [...new Set(commonLengths)].sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(splits.length / MAX_SPLITS));
  const candidates = [0, ...splits.filter((_, i) => i % step === 0).map((length) => length + 1)];
  const layouts = candidates.map((minShared) => splitIntoGroups(rows, commonLengths, minShared));
  const costs = layouts.map((layout) => estimateCost(layout, hiddenSize));
  const bestGroups = layouts[costs.indexOf(Math.min(...costs))];

  const rowPositions = bestGroups.flatMap(({ prefix, rows: groupRows }, group) =>
    groupRows.map((_, row) => ({ group, row, prefix: prefix.length })),
  );
  return { groups: bestGroups, positions: rowIndices.map((row) => rowPositions[row]) };
}

/** Rows in groups: neighbours with at least `shortest` tokens in common stay together. */
function splitIntoGroups(
  rows: readonly (readonly number[])[],
  commonLengths: readonly number[],
  minShared: number,
): PrefixGroup[] {
  const groups: PrefixGroup[] = [];
  /** What all rows begin with, where there are several. */
  const commonTokens = commonLengths.length === 0 ? 0 : Math.min(...commonLengths);
  let start = 0;
  let sharedLength = Infinity;
  for (let i = 1; i <= rows.length; i++) {
    if (i < rows.length && commonLengths[i - 1] >= minShared) {
      sharedLength = Math.min(sharedLength, commonLengths[i - 1]);
      continue;
    }
    const members = rows.slice(start, i);
    const length = members.length > 1 ? sharedLength : commonTokens;
    groups.push({ prefix: members[0].slice(0, length), rows: members.map((row) => row.slice(length)) });
    start = i;
    sharedLength = Infinity;
  }
  return groups;
}

/** Work in units of a token's matrix products (24 width^2); a pair of attention slots takes 4 width. */
function estimateCost(groups: readonly PrefixGroup[], hiddenSize: number): number {
  const { tokens, pairs } = packedSize(groups);
  return tokens + pairs / (6 * hiddenSize);
}

/** How many tokens groups hold, and how many pairs of slots each head compares, padding among them. */
export function packedSize(groups: readonly PrefixGroup[]): { readonly tokens: number; readonly pairs: number } {
  const commonTokens = commonPrefixLength(groups);
  const prefix = Math.max(...groups.map((group) => group.prefix.length));
  const rowCount = Math.max(...groups.map((group) => group.rows.length));
  const rowLength = Math.max(...groups.flatMap((group) => group.rows.map((row) => row.length)));
  const tokens = groups.reduce(
    (sum, group) =>
      sum + group.prefix.length - commonTokens + group.rows.reduce((rowTokens, row) => rowTokens + row.length, 0),
    commonTokens,
  );
  const pairs =
    commonTokens * commonTokens +
    groups.length * ((prefix - commonTokens) * prefix + rowCount * rowLength * (prefix + rowLength));
  return { tokens, pairs };
}

/** Lexicographic order; the beginning of a sequence comes before it. */
export function compareTokens(a: readonly number[], b: readonly number[]): number {
  const length = sharedPrefixLength(a, b);
  return (a[length] ?? -1) - (b[length] ?? -1);
}
