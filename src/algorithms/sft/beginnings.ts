import { commonLength } from "../../models/batch.js";
import { compare } from "../policy/rows.js";
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
  const sorted = [...examples].sort((a, b) => compare(a.tokens, b.tokens));
  const clusters: Cluster[] = [];
  for (let start = 0; start < sorted.length;) {
    const run = longestRun(sorted, start);
    const size = 2 ** Math.floor(Math.log2(run.length));
    clusters.push({ shared: size === 1 ? 0 : run[size - 1], rows: sorted.slice(start, start + size) });
    start += size;
  }
  return clusters;
}

/**
 * How many tokens the first n examples from `start` on begin with in common, for each n: one more joins as long as what all
 * share does not shrink by half.
 */
function longestRun(sorted: readonly TokenExample[], start: number): readonly number[] {
  const first = sorted[start];
  const shared = [firstLearnt(first)];
  for (let i = start + 1; i < sorted.length; i++) {
    const before = shared[shared.length - 1];
    const common = Math.min(before, commonLength(first.tokens, sorted[i].tokens), firstLearnt(sorted[i]));
    if (common < SHORTEST_PREFIX || 2 * common < before) break;
    shared.push(common);
  }
  return shared;
}

/** How many tokens come before the first that is learnt; only these can be shared. Each row keeps a token of its own. */
function firstLearnt({ tokens, mask }: TokenExample): number {
  let i = 0;
  while (i < tokens.length - 1 && mask[i] === 0) i++;
  return i;
}
