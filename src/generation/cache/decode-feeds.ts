import type { DecoderConfig } from "../../engine/nn/index.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/index.js";
import { headIndices, padIndexFeeds, positionFeeds, PADDING_POSITION } from "../../models/graphs/index.js";
import type { CausalLM } from "../../models/index.js";
import type { KvCache } from "./kv-cache.js";

/** New tokens of one row, after its cached ones. */
export interface RowInput {
  readonly tokens: readonly number[];
  /** Row of the cache with the tokens before; the index of the row if there is no cache. */
  readonly cacheRow: number;
  /** Number of valid tokens in that row. */
  readonly cachedLength: number;
  /** Number of known tokens of the whole sequence; some rotary embeddings depend on it. */
  readonly sequenceLength: number;
}

export interface DecodeInputs {
  readonly rows: readonly RowInput[];
  /** Tokens before all rows. */
  readonly prefixCache: KvCache | undefined;
  readonly prefixLength: number;
  readonly cache: KvCache | undefined;
  /** Flat indices (row after row) of the tokens whose logits are computed. */
  readonly selectedTokens: readonly number[];
  /** One per selected token. */
  readonly inverseTemperatures: readonly number[];
  /** Flat indices of tokens of which only the logits of `headTokens` are computed. */
  readonly constrainedTokens?: readonly number[];
  readonly headTokens?: readonly number[];
  /** Slots of the tokens' kept states, for a session that starts from them. */
  readonly frozenSlots?: readonly number[];
  readonly adapter: boolean;
  /** The model whose values are used: the session's, or another version of it. */
  readonly model: CausalLM;
}

/** Returns the inputs of the decode graph that change from step to step. */
export function rowFeeds(
  config: DecoderConfig,
  {
    rows,
    prefixLength,
    cache,
    selectedTokens,
    inverseTemperatures,
    constrainedTokens = [],
    headTokens = [0],
  }: DecodeInputs,
  rowCount: number,
): Record<string, Tensor> {
  const layout = layOutRows(rows, prefixLength, rowCount);
  const { tokens, positions, sequenceLengths, rowTokens, flatIndices } = layout;
  const headPadIndex = (name: string, heads: number) => {
    const paddedShape = { groups: 1, rows: rowCount, tokens: rowTokens };
    return padIndexFeeds(
      name,
      headIndices(config, heads, paddedShape, (_, row, i) => flatIndices[row * rowTokens + i]),
      tokens.length * heads,
    );
  };
  return {
    tokens: int32(tokens),
    ...positionFeeds(config, positions, sequenceLengths),
    row_positions: tensor("int32", [1, rowCount, rowTokens], layout.rowPositions),
    prefix_positions: int32(
      Array.from({ length: paddedPrefixLength(prefixLength) }, (_, i) => (i < prefixLength ? i : PADDING_POSITION)),
      [1, 1, paddedPrefixLength(prefixLength)],
    ),
    cache_positions: cachePositions(cache, layout.cacheLengths, prefixLength, rowCount),
    ...headPadIndex("query", config.heads),
    ...headPadIndex("key", config.keyValueHeads),
    select: int32(selectedTokens),
    select_constrained: int32(constrainedTokens),
    head_tokens: int32(headTokens),
    inverse_temperature: tensor("float32", [selectedTokens.length, 1], Float32Array.from(inverseTemperatures)),
  };
}

/** The tokens of rows laid flat, and their slots [rows, rowTokens] of attention. */
interface RowLayout {
  readonly tokens: readonly number[];
  readonly positions: readonly number[];
  readonly sequenceLengths: readonly number[];
  /** Number of slots of a row. */
  readonly rowTokens: number;
  /** Position of the token in each slot. */
  readonly rowPositions: Int32Array;
  /** Index of the token in each slot. */
  readonly flatIndices: Int32Array;
  /** Number of cached tokens of each row of the cache. */
  readonly cacheLengths: Int32Array;
}

function layOutRows(rows: readonly RowInput[], prefixLength: number, rowCount: number): RowLayout {
  const [tokens, positions, sequenceLengths]: number[][] = [[], [], []];
  const append = (token: number, position: number, sequenceLength: number) => {
    tokens.push(token);
    positions.push(position);
    sequenceLengths.push(sequenceLength);
  };
  const rowTokens = Math.max(1, ...rows.map((row) => row.tokens.length));
  const rowPositions = new Int32Array(rowCount * rowTokens).fill(PADDING_POSITION);
  const cacheLengths = new Int32Array(rowCount);
  const flatIndices = new Int32Array(rowCount * rowTokens).fill(-1);
  for (const { tokens: added, cacheRow, cachedLength, sequenceLength } of rows) {
    cacheLengths[cacheRow] = cachedLength;
    added.forEach((token, i) => {
      const slot = cacheRow * rowTokens + i;
      flatIndices[slot] = tokens.length;
      append(token, prefixLength + cachedLength + i, sequenceLength);
      rowPositions[slot] = positions[flatIndices[slot]];
    });
  }
  // A masked padding token fills the rows that are shorter or not active.
  if (flatIndices.includes(-1)) {
    flatIndices.forEach((value, i) => {
      if (value === -1) flatIndices[i] = tokens.length;
    });
    append(0, 0, 1);
  }
  return { tokens, positions, sequenceLengths, rowTokens, rowPositions, flatIndices, cacheLengths };
}

function cachePositions(
  cache: KvCache | undefined,
  lengths: Int32Array,
  prefixLength: number,
  rowCount: number,
): Tensor {
  const capacity = cache?.capacity ?? 1;
  const positions = new Int32Array(rowCount * capacity).fill(PADDING_POSITION);
  lengths.forEach((length, cacheRow) => {
    for (let i = 0; i < length; i++) positions[cacheRow * capacity + i] = prefixLength + i;
  });
  return tensor("int32", [1, rowCount, capacity], positions);
}

/** The decode graph needs a prefix of at least one token; a missing one is a masked token. */
export function paddedPrefixLength(prefixLength: number): number {
  return Math.max(1, prefixLength);
}
