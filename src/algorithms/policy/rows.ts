import { commonLength, rootLength, type SequenceGroup } from "../../models/batch.js";

/** Token sequences laid out for one forward pass: each distinct beginning is computed as few times as it pays. */
export interface LaidRows {
  readonly groups: readonly SequenceGroup[];
  /** Where each given sequence is found; it may be the beginning of a longer one. */
  readonly places: readonly { readonly group: number; readonly row: number; readonly prefix: number }[];
}

/** Different splits into groups that are looked at; more would only cost time. */
const MOST_SPLITS = 16;

/**
 * Lays sequences out in groups of rows behind a shared prefix. A sequence that is the beginning of another is part of that row;
 * the number of groups is what needs the least work for a model of this hidden size.
 */
export function layRows(sequences: readonly (readonly number[])[], hiddenSize: number): LaidRows {
  const order = sequences.map((_, i) => i).sort((a, b) => compare(sequences[a], sequences[b]));
  const rows: (readonly number[])[] = [];
  const rowOf: number[] = [];
  // From the end of the order on, whatever begins a row stands directly behind it.
  for (let i = order.length - 1; i >= 0; i--) {
    const sequence = sequences[order[i]];
    const last = rows.at(-1);
    if (last === undefined || commonLength(sequence, last) < sequence.length) rows.push(sequence);
    rowOf[order[i]] = rows.length - 1;
  }
  const common = rows.slice(1).map((row, i) => commonLength(rows[i], row));
  const splits = [...new Set(common)].sort((a, b) => a - b);
  const step = Math.max(1, Math.ceil(splits.length / MOST_SPLITS));
  const candidates = [0, ...splits.filter((_, i) => i % step === 0).map((length) => length + 1)];
  const layouts = candidates.map((shortest) => split(rows, common, shortest));
  const works = layouts.map((layout) => work(layout, hiddenSize));
  const best = layouts[works.indexOf(Math.min(...works))];

  const placeOf = best.flatMap(({ prefix, rows: own }, group) =>
    own.map((_, row) => ({ group, row, prefix: prefix.length })),
  );
  return { groups: best, places: rowOf.map((row) => placeOf[row]) };
}

/** Rows in groups: neighbours with at least `shortest` tokens in common stay together. */
function split(rows: readonly (readonly number[])[], common: readonly number[], shortest: number): SequenceGroup[] {
  const groups: SequenceGroup[] = [];
  /** What all rows begin with, where there are several. */
  const root = common.length === 0 ? 0 : Math.min(...common);
  let start = 0;
  let shared = Infinity;
  for (let i = 1; i <= rows.length; i++) {
    if (i < rows.length && common[i - 1] >= shortest) {
      shared = Math.min(shared, common[i - 1]);
      continue;
    }
    const own = rows.slice(start, i);
    const length = own.length > 1 ? shared : root;
    groups.push({ prefix: own[0].slice(0, length), rows: own.map((row) => row.slice(length)) });
    start = i;
    shared = Infinity;
  }
  return groups;
}

/** Work in units of a token's matrix products (24 width^2); a pair of attention slots takes 4 width. */
function work(groups: readonly SequenceGroup[], hiddenSize: number): number {
  const { tokens, pairs } = extent(groups);
  return tokens + pairs / (6 * hiddenSize);
}

/** How many tokens groups hold, and how many pairs of slots each head compares, padding among them. */
export function extent(groups: readonly SequenceGroup[]): { readonly tokens: number; readonly pairs: number } {
  const root = rootLength(groups);
  const prefix = Math.max(...groups.map((group) => group.prefix.length));
  const rowCount = Math.max(...groups.map((group) => group.rows.length));
  const rowLength = Math.max(...groups.flatMap((group) => group.rows.map((row) => row.length)));
  const tokens = groups.reduce(
    (sum, group) => sum + group.prefix.length - root + group.rows.reduce((own, row) => own + row.length, 0),
    root,
  );
  const pairs = root * root + groups.length * ((prefix - root) * prefix + rowCount * rowLength * (prefix + rowLength));
  return { tokens, pairs };
}

/** Lexicographic order; the beginning of a sequence comes before it. */
export function compare(a: readonly number[], b: readonly number[]): number {
  const length = commonLength(a, b);
  return (a[length] ?? -1) - (b[length] ?? -1);
}
