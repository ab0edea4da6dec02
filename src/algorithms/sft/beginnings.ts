import type { TokenExample } from "./example.js";

/** Rows behind one beginning; a row alone has none. */
export interface Cluster {
  /** Tokens that all rows begin with, none of them learnt. */
  readonly shared: number;
  readonly rows: readonly TokenExample[];
}

/** Beginnings shorter than this are not worth a group of their own. */
const SHORTEST_PREFIX = 16;

/**
 * Finds examples that begin with the same tokens, such as a system prompt or a whole prompt with several completions.
 * Clusters have powers of two as sizes, so that few sizes occur; examples that share too little stay alone.
 */
export function shareBeginnings(examples: readonly TokenExample[]): readonly Cluster[] {
  const sorted = [...examples].sort((a, b) => compareTokens(a.tokens, b.tokens));
  const clusters: Cluster[] = [];
  for (let start = 0; start < sorted.length;) {
    const { count, shared } = longestRun(sorted, start);
    const size = 2 ** Math.floor(Math.log2(count));
    clusters.push({ shared: size === 1 ? 0 : shared, rows: sorted.slice(start, start + size) });
    start += size;
  }
  return clusters;
}

/**
 * How many examples from `start` on share a beginning, and how long it is: one more joins as long as what all share does
 * not shrink by half.
 */
function longestRun(sorted: readonly TokenExample[], start: number): { count: number; shared: number } {
  const first = sorted[start];
  let shared = firstLearnt(first);
  let count = 1;
  for (; start + count < sorted.length; count++) {
    const next = sorted[start + count];
    const common = Math.min(commonLength(first.tokens, next.tokens, shared), firstLearnt(next));
    if (common < SHORTEST_PREFIX || 2 * common < shared) break;
    shared = common;
  }
  return { count, shared };
}

/** How many tokens come before the first that is learnt; only these can be shared. Each row keeps a token of its own. */
function firstLearnt({ tokens, mask }: TokenExample): number {
  let i = 0;
  while (i < tokens.length - 1 && mask[i] === 0) i++;
  return i;
}

function commonLength(a: readonly number[], b: readonly number[], limit: number): number {
  let length = 0;
  while (length < limit && length < b.length && a[length] === b[length]) length++;
  return length;
}

function compareTokens(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
