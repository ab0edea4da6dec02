import { sharedPrefixLength } from "../../../models/graphs/sequence-batch.js";
import { compareTokens } from "../../../models/graphs/prefix-packing.js";
import type { TokenExample } from "../../data/sft-example.js";

/** Rows behind one beginning; a row alone has none. */
export interface PrefixCluster {
  /** Tokens that all rows begin with, none of them learnt. */
  readonly shared: number;
  readonly rows: readonly TokenExample[];
}

/** Beginnings shorter than this are not worth a group of their own. */
const MIN_PREFIX_LENGTH = 16;

/**
 * Finds examples that begin with the same tokens, such as a system prompt or a whole prompt with several completions.
 * Clusters have powers of two as sizes, so that few sizes occur; examples that share too little stay alone.
 */
export function clusterBySharedPrefix(examples: readonly TokenExample[]): readonly PrefixCluster[] {
  const sorted = [...examples].sort((a, b) => compareTokens(a.tokens, b.tokens));
  const clusters: PrefixCluster[] = [];
  for (let start = 0; start < sorted.length;) {
    const sharedLengths = sharedPrefixLengths(sorted, start);
    const size = 2 ** Math.floor(Math.log2(sharedLengths.length));
    clusters.push({ shared: size === 1 ? 0 : sharedLengths[size - 1], rows: sorted.slice(start, start + size) });
    start += size;
  }
  return clusters;
}

/**
 * How many tokens the first n examples from `start` on begin with in common, for each n: one more joins as long as what all
 * share does not shrink by half.
 */
function sharedPrefixLengths(sorted: readonly TokenExample[], start: number): readonly number[] {
  const first = sorted[start];
  const shared = [firstLossToken(first)];
  for (let i = start + 1; i < sorted.length; i++) {
    const previous = shared[shared.length - 1];
    const common = Math.min(previous, sharedPrefixLength(first.tokens, sorted[i].tokens), firstLossToken(sorted[i]));
    if (common < MIN_PREFIX_LENGTH || 2 * common < previous) break;
    shared.push(common);
  }
  return shared;
}

/** How many tokens come before the first that is learnt; only these can be shared. Each row keeps a token of its own. */
function firstLossToken({ tokens, lossMask }: TokenExample): number {
  let i = 0;
  while (i < tokens.length - 1 && lossMask[i] === 0) i++;
  return i;
}
