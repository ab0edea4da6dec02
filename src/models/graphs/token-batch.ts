import { int32, tensor, type Tensor } from "../../engine/tensor/index.js";
import type { PrefixGroup } from "./sequence-batch.js";

/**
 * A token whose log-probability is computed; `index` counts from the end of the prefix and is
 * negative within it.
 */
export interface SelectedToken {
  readonly group: number;
  readonly row: number;
  readonly index: number;
  /**
   * Token id, if it is not the row's token at `index`: an alternative to it, or the token after the
   * row.
   */
  readonly target?: number;
  /** Token ids among which the log-probability is computed; undefined for the whole vocabulary. */
  readonly allowedTokens?: Int32Array;
}

/** Packed sequences and the tokens whose log-probabilities are computed. */
export interface TokenBatch {
  readonly groups: readonly PrefixGroup[];
  readonly selected: readonly SelectedToken[];
  /**
   * The tokens whose logits are computed, with all targets and allowed tokens; only for graphs
   * `withHeadTokens`.
   */
  readonly headTokens?: readonly number[];
  /** Temperature of the policy; default 1. */
  readonly temperature?: number;
}

/** Computing the logits of some tokens pays off for at most this fraction of the vocabulary. */
const MAX_HEAD_FRACTION = 1 / 4;

/** Whether computing the logits of this many tokens alone pays off. */
export function paysOffAsHead(tokenCount: number, vocabSize: number): boolean {
  return tokenCount <= MAX_HEAD_FRACTION * vocabSize;
}

/**
 * Returns the distinct sets of allowed tokens, of which the first is the whole vocabulary, and each
 * token's set.
 */
export function allowedTokenFeeds(
  selected: readonly SelectedToken[],
  columns: number,
  toColumn: (token: number) => number,
): Record<string, Tensor> {
  const setIndices = new Map<Int32Array | undefined, number>([[undefined, 0]]);
  for (const { allowedTokens } of selected)
    if (!setIndices.has(allowedTokens)) setIndices.set(allowedTokens, setIndices.size);
  const mask = new Uint8Array(setIndices.size * columns);
  for (const [ids, index] of setIndices) {
    const maskRow = mask.subarray(index * columns, (index + 1) * columns);
    if (ids === undefined) maskRow.fill(1);
    else for (const id of ids) maskRow[toColumn(id)] = 1;
  }
  return {
    token_sets: tensor("bool", [setIndices.size, columns], mask),
    set_indices: int32(selected.map(({ allowedTokens }) => setIndices.get(allowedTokens)!)),
  };
}

/** Returns the token at a position of a row or of its prefix. */
export function getTokenAt(groups: readonly PrefixGroup[], { group, row, index }: SelectedToken): number {
  const { prefix, rows } = groups[group];
  return index < 0 ? prefix[prefix.length + index] : rows[row][index];
}
