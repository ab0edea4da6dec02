import { and, less, lessEqual, reshape, sub, where, intScalar, type Node } from "../graph/index.js";

const HIDDEN = -1e9;

/**
 * What a query may see, as an additive bias [groups, 1, rows, 1, tokens, keys]: 0 for keys at its own position and before
 * (within the window, where there is one), -1e9 for the others.
 * @param queries positions [groups, rows, tokens], int32
 * @param keys positions [groups, rows or 1, keys], int32
 */
export function visibilityBias(queries: Node, keys: Node, window: number | undefined): Node {
  const [groups, rows, tokens] = queries.shape;
  const [, keyRows, length] = keys.shape;
  const at = reshape(queries, [groups, 1, rows, 1, tokens, 1]);
  const of = reshape(keys, [groups, 1, keyRows, 1, 1, length]);
  const before = lessEqual(of, at);
  const visible = window === undefined ? before : and(before, less(sub(at, of), intScalar(window)));
  return where(visible, 0, HIDDEN);
}
