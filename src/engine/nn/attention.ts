import {
  add,
  concat,
  matmul,
  mul,
  reshape,
  gatherRowsWithInverse,
  softmax,
  split,
  tanh,
  type Dim,
  type Node,
  mulDims,
} from "../graph/index.js";
import type { DecoderConfig, LayerConfig } from "./decoder-config.js";

export interface AttentionShape {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly scale: number;
  readonly softcap: number | undefined;
}

/** What a layer's attention is computed with. */
export function getAttentionShape(config: DecoderConfig, layer: LayerConfig): AttentionShape {
  const { heads, keyValueHeads, headDim, attentionScale, attentionSoftcap } = config;
  return { heads, keyValueHeads, headDim, scale: layer.attentionScale ?? attentionScale, softcap: attentionSoftcap };
}

/**
 * Queries in slots: [groups, keyValueHeads, rows, heads per keyValueHead, tokens, headDim] as a flat list of head vectors.
 * Every group of rows shares a prefix; heads that share keys lie together, so that keys are never repeated.
 */
export interface PaddedShape {
  readonly groups: Dim;
  readonly rows: Dim;
  readonly tokens: Dim;
}

/** Keys and values that the queries may see: one set for all rows of a group, or one for each row. */
export interface KeyValueBlock {
  /** Shared: [groups, keyValueHeads, length, headDim]; own: [groups, keyValueHeads, rows, length, headDim]. */
  readonly keys: Node;
  readonly values: Node;
  readonly isShared: boolean;
}

/** Where head vectors go, and how to find them again (see routeRows). */
export interface PadIndex {
  readonly indices: Node;
  readonly inverse: Node;
}

/** x [tokens, heads * headDim] as head vectors in slots [slots, headDim]. */
export function padHeads(x: Node, heads: number, headDim: number, { indices, inverse }: PadIndex): Node {
  return gatherRowsWithInverse(reshape(x, [mulDims(x.shape[0], heads), headDim]), indices, inverse);
}

/** Head vectors in slots back to [tokens, heads * headDim]. */
export function unpadHeads(x: Node, heads: number, headDim: number, tokens: Dim, { indices, inverse }: PadIndex): Node {
  return reshape(gatherRowsWithInverse(x, inverse, indices), [tokens, heads * headDim]);
}

/**
 * Attention of queries [slots, headDim] over segments, with an additive bias
 * [groups, 1, rows, 1, tokens, all keys]: gives [slots, headDim].
 */
export function attend(
  queries: Node,
  blocks: readonly KeyValueBlock[],
  bias: Node,
  paddedShape: PaddedShape,
  shape: AttentionShape,
): Node {
  const { heads, keyValueHeads, headDim, scale, softcap } = shape;
  const { groups, rows, tokens } = paddedShape;
  const headsPerKeyValueHead = heads / keyValueHeads;
  const sharedShape: readonly Dim[] = [groups, keyValueHeads, mulDims(rows, headsPerKeyValueHead, tokens)];
  const perRowShape: readonly Dim[] = [groups, keyValueHeads, rows, mulDims(headsPerKeyValueHead, tokens)];
  const fullShape: readonly Dim[] = [groups, keyValueHeads, rows, headsPerKeyValueHead, tokens];
  const lengths = blocks.map(({ keys }) => keys.shape[keys.shape.length - 2]);

  const scores = blocks.map((block, i) => {
    const grouped = reshape(queries, [...(block.isShared ? sharedShape : perRowShape), headDim]);
    return reshape(matmul(grouped, block.keys, { transposeB: true, alpha: scale }), [...fullShape, lengths[i]]);
  });
  let allScores = concat(scores, -1);
  if (softcap !== undefined) allScores = mul(tanh(mul(allScores, 1 / softcap)), softcap);
  const weights = split(softmax(add(allScores, bias)), -1, lengths);
  const outputs = blocks.map((block, i) => {
    const grouped = reshape(weights[i], [...(block.isShared ? sharedShape : perRowShape), lengths[i]]);
    return reshape(matmul(grouped, block.values), [mulDims(...fullShape), headDim]);
  });
  return outputs.reduce(add);
}
