import { and, less, lessEqual, reshape, sub, where, intScalar, type Node } from "../graph/index.js";

const MASKED = -1e9;

/**
 * Builds the causal attention bias [groups, 1, rows, 1, tokens, keys]: 0 for keys at or before the query's position
 * (and within the window, if any), -1e9 for the others.
 */
export function attentionBias(queryPositions: Node, keyPositions: Node, window: number | undefined): Node {
  const [groups, rows, tokens] = queryPositions.shape;
  const [, keyRows, length] = keyPositions.shape;
  const query = reshape(queryPositions, [groups, 1, rows, 1, tokens, 1]);
  const key = reshape(keyPositions, [groups, 1, keyRows, 1, 1, length]);
  const isCausal = lessEqual(key, query);
  const isVisible = window === undefined ? isCausal : and(isCausal, less(sub(query, key), intScalar(window)));
  return where(isVisible, 0, MASKED);
}
