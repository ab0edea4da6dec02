import { commonPrefixLength, sharedPrefixLength, type PrefixGroup } from "./sequence-batch.js";

export type TokenSequence = readonly number[];

/** Sequences in groups of rows behind shared prefixes. */
export interface PrefixLayout {
  readonly groups: readonly PrefixGroup[];
  /**
   * Where each sequence begins; a sequence may be the beginning of a longer row. `prefix` is the
   * length of its group's.
   */
  readonly positions: readonly { readonly group: number; readonly row: number; readonly prefix: number }[];
}

/** Groupings that are compared; more would cost more time than they save. */
const MAX_GROUPINGS = 16;
/** Fixed cost of a graph with prefixes, in tokens. */
const PREFIX_COST = 64;

/**
 * Lays sequences out in groups of rows behind shared prefixes. A sequence that is the beginning of
 * another becomes part of its row; of several groupings, that of the lowest estimated cost is used.
 */
export function layOutSequences(
  sequences: readonly TokenSequence[],
  { hiddenSize, sharePrefixes = true }: { readonly hiddenSize: number; readonly sharePrefixes?: boolean },
): PrefixLayout {
  if (!sharePrefixes) {
    const positions = sequences.map((_, row) => ({ group: 0, row, prefix: 0 }));
    return { groups: [{ prefix: [], rows: sequences }], positions };
  }
  const { rows, rowIndices } = mergeBeginnings(sequences);
  const groups = groupRows(rows, hiddenSize);
  const rowPositions = groups.flatMap(({ prefix, rows: members }, group) =>
    members.map((_, row) => ({ group, row, prefix: prefix.length })),
  );
  return { groups, positions: rowIndices.map((row) => rowPositions[row]) };
}

/**
 * Returns the sequences that begin no other one, in descending order, and for each sequence the row
 * that begins with it.
 */
function mergeBeginnings(sequences: readonly TokenSequence[]): { rows: TokenSequence[]; rowIndices: number[] } {
  const order = sequences.map((_, i) => i).sort((a, b) => compareTokens(sequences[a], sequences[b]));
  const rows: TokenSequence[] = [];
  const rowIndices: number[] = [];
  // In ascending order, a sequence stands directly before those that begin with it.
  for (const i of order.reverse()) {
    const sequence = sequences[i];
    const last = rows.at(-1);
    if (last === undefined || sharedPrefixLength(sequence, last) < sequence.length) rows.push(sequence);
    rowIndices[i] = rows.length - 1;
  }
  return { rows, rowIndices };
}

function groupRows(rows: readonly TokenSequence[], hiddenSize: number): readonly PrefixGroup[] {
  const sharedLengths = rows.slice(1).map((row, i) => sharedPrefixLength(rows[i], row));
  const distinctLengths = [...new Set(sharedLengths)].sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(distinctLengths.length / MAX_GROUPINGS));
  const thresholds = [0, ...distinctLengths.filter((_, i) => i % step === 0).map((length) => length + 1)];
  const groupings = thresholds.map((minShared) => groupNeighbors(rows, sharedLengths, minShared));
  groupings.push([{ prefix: [], rows }]);
  const costs = groupings.map((groups) => estimateCost(groups, hiddenSize));
  return groupings[costs.indexOf(Math.min(...costs))];
}

/** Groups neighbors that share at least `minShared` tokens. */
function groupNeighbors(
  rows: readonly TokenSequence[],
  sharedLengths: readonly number[],
  minShared: number,
): PrefixGroup[] {
  const groups: PrefixGroup[] = [];
  /** Tokens that all rows begin with, where there are several. */
  const commonTokens = sharedLengths.length === 0 ? 0 : Math.min(...sharedLengths);
  let start = 0;
  let sharedLength = Infinity;
  for (let i = 1; i <= rows.length; i++) {
    if (i < rows.length && sharedLengths[i - 1] >= minShared) {
      sharedLength = Math.min(sharedLength, sharedLengths[i - 1]);
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

/**
 * Estimates the cost of a pass in units of a token's matrix products (24 width^2); an attention
 * pair takes 4 width.
 */
export function estimateCost(groups: readonly PrefixGroup[], hiddenSize: number): number {
  const { tokens, pairs } = packedSize(groups);
  const hasPrefix = groups.some(({ prefix }) => prefix.length > 0);
  return tokens + pairCost(pairs, hiddenSize) + (hasPrefix ? PREFIX_COST : 0);
}

/** Estimates the part of the cost that attention between padding slots takes. */
export function estimatePaddingCost(groups: readonly PrefixGroup[], hiddenSize: number): number {
  const commonTokens = commonPrefixLength(groups);
  const pairs = groups.reduce(
    (sum, { prefix, rows }) =>
      sum +
      (prefix.length - commonTokens) * prefix.length +
      rows.reduce((rowSum, row) => rowSum + row.length * (prefix.length + row.length), 0),
    commonTokens ** 2,
  );
  return pairCost(packedSize(groups).pairs - pairs, hiddenSize);
}

function pairCost(pairs: number, hiddenSize: number): number {
  return pairs / (6 * hiddenSize);
}

/** Counts the tokens of groups and the pairs of attention slots per head, padding included. */
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

/**
 * Returns a function that gives equal sequences equal keys. The key of an array is computed once,
 * so the array must not change afterwards.
 */
export function sequenceKeys(): (sequence: TokenSequence) => string {
  const keys = new WeakMap<TokenSequence, string>();
  return (sequence) => {
    let key = keys.get(sequence);
    if (key === undefined) keys.set(sequence, (key = sequence.join()));
    return key;
  };
}

/** Compares sequences in lexicographic order; a sequence comes after its beginnings. */
export function compareTokens(a: TokenSequence, b: TokenSequence): number {
  const length = sharedPrefixLength(a, b);
  return (a[length] ?? -1) - (b[length] ?? -1);
}
