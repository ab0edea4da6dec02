import {
  add,
  and,
  concat,
  intScalar,
  less,
  lessEqual,
  MASKED_LOGIT,
  matmul,
  mul,
  reshape,
  gatherRowsWithInverse,
  softmax,
  split,
  sub,
  where,
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

/** Returns the attention parameters of a layer. */
export function getAttentionShape(config: DecoderConfig, layer: LayerConfig): AttentionShape {
  const { heads, keyValueHeads, headDim, attentionScale, attentionSoftcap } = config;
  return { heads, keyValueHeads, headDim, scale: layer.attentionScale ?? attentionScale, softcap: attentionSoftcap };
}

/**
 * Padded layout of queries: [groups, keyValueHeads, rows, heads per keyValueHead, tokens, headDim]
 * as a flat list of head vectors. Rows of a group share a prefix; heads that share keys are
 * adjacent, so keys are not repeated.
 */
export interface PaddedShape {
  readonly groups: Dim;
  readonly rows: Dim;
  readonly tokens: Dim;
}

/** Keys and values, shared by all rows of a group or per row. */
export interface KeyValueBlock {
  /**
   * Shared: [groups, keyValueHeads, length, headDim]; per row: [groups, keyValueHeads, rows,
   * length, headDim].
   */
  readonly keys: Node;
  readonly values: Node;
  readonly isShared: boolean;
}

/** Indices into and out of the padded layout; see gatherRowsWithInverse. */
export interface PadIndex {
  readonly indices: Node;
  readonly inverse: Node;
}

/** Moves the head vectors of x [tokens, heads * headDim] into padded slots [slots, headDim]. */
export function padHeads(x: Node, heads: number, headDim: number, { indices, inverse }: PadIndex): Node {
  return gatherRowsWithInverse(reshape(x, [mulDims(x.shape[0], heads), headDim]), indices, inverse);
}

/** Moves padded head vectors back to [tokens, heads * headDim]. */
export function unpadHeads(x: Node, heads: number, headDim: number, tokens: Dim, { indices, inverse }: PadIndex): Node {
  return reshape(gatherRowsWithInverse(x, inverse, indices), [tokens, heads * headDim]);
}

/**
 * Computes attention of queries [slots, headDim] over key/value blocks with an additive bias
 * [groups, 1, rows, 1, tokens, all keys]; returns [slots, headDim].
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

/**
 * Builds the causal attention bias [groups, 1, rows, 1, tokens, keys]: 0 for keys at or before the
 * query's position (and within the window, if any), -1e9 for the others.
 */
export function attentionBias(queryPositions: Node, keyPositions: Node, window: number | undefined): Node {
  const [groups, rows, tokens] = queryPositions.shape;
  const [, keyRows, length] = keyPositions.shape;
  const query = reshape(queryPositions, [groups, 1, rows, 1, tokens, 1]);
  const key = reshape(keyPositions, [groups, 1, keyRows, 1, 1, length]);
  const isCausal = lessEqual(key, query);
  const isVisible = window === undefined ? isCausal : and(isCausal, less(sub(query, key), intScalar(window)));
  return where(isVisible, 0, MASKED_LOGIT);
}
