import {
  add,
  concat,
  matmul,
  mul,
  reshape,
  routeRows,
  softmax,
  split,
  tanh,
  type Dim,
  type Node,
  mulDims,
} from "../graph/index.js";
import type { DecoderConfig, LayerConfig } from "./config.js";

export interface AttentionShape {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly scale: number;
  readonly softcap: number | undefined;
}

/** What a layer's attention is computed with. */
export function attentionShape(config: DecoderConfig, layer: LayerConfig): AttentionShape {
  const { heads, keyValueHeads, headDim, attentionScale, attentionSoftcap } = config;
  return { heads, keyValueHeads, headDim, scale: layer.attentionScale ?? attentionScale, softcap: attentionSoftcap };
}

/**
 * Queries in slots: [groups, keyValueHeads, rows, heads per keyValueHead, tokens, headDim] as a flat list of head vectors.
 * Every group of rows shares a prefix; heads that share keys lie together, so that keys are never repeated.
 */
export interface Slots {
  readonly groups: Dim;
  readonly rows: Dim;
  readonly tokens: Dim;
}

/** Keys and values that the queries may see: one set for all rows of a group, or one for each row. */
export interface Segment {
  /** Shared: [groups, keyValueHeads, length, headDim]; own: [groups, keyValueHeads, rows, length, headDim]. */
  readonly keys: Node;
  readonly values: Node;
  readonly shared: boolean;
}

/** Where head vectors go, and how to find them again (see routeRows). */
export interface Route {
  readonly slots: Node;
  readonly inverse: Node;
}

/** x [tokens, heads * headDim] as head vectors in slots [slots, headDim]. */
export function intoSlots(x: Node, heads: number, headDim: number, { slots, inverse }: Route): Node {
  return routeRows(reshape(x, [mulDims(x.shape[0], heads), headDim]), slots, inverse);
}

/** Head vectors in slots back to [tokens, heads * headDim]. */
export function outOfSlots(x: Node, heads: number, headDim: number, tokens: Dim, { slots, inverse }: Route): Node {
  return reshape(routeRows(x, inverse, slots), [tokens, heads * headDim]);
}

/**
 * Attention of queries [slots, headDim] over segments, with an additive bias
 * [groups, 1, rows, 1, tokens, all keys]: gives [slots, headDim].
 */
export function attend(
  queries: Node,
  segments: readonly Segment[],
  bias: Node,
  slots: Slots,
  shape: AttentionShape,
): Node {
  const { heads, keyValueHeads, headDim, scale, softcap } = shape;
  const { groups, rows, tokens } = slots;
  const perKey = heads / keyValueHeads;
  const shared: readonly Dim[] = [groups, keyValueHeads, mulDims(rows, perKey, tokens)];
  const own: readonly Dim[] = [groups, keyValueHeads, rows, mulDims(perKey, tokens)];
  const all: readonly Dim[] = [groups, keyValueHeads, rows, perKey, tokens];
  const lengths = segments.map(({ keys }) => keys.shape[keys.shape.length - 2]);

  const scores = segments.map((segment, i) => {
    const grouped = reshape(queries, [...(segment.shared ? shared : own), headDim]);
    return reshape(matmul(grouped, segment.keys, { transposeB: true, alpha: scale }), [...all, lengths[i]]);
  });
  let total = concat(scores, -1);
  if (softcap !== undefined) total = mul(tanh(mul(total, 1 / softcap)), softcap);
  const weights = split(softmax(add(total, bias)), -1, lengths);
  const parts = segments.map((segment, i) => {
    const grouped = reshape(weights[i], [...(segment.shared ? shared : own), lengths[i]]);
    return reshape(matmul(grouped, segment.values), [mulDims(...all), headDim]);
  });
  return parts.reduce(add);
}
