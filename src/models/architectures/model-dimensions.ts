import type { JsonFields } from "../../core/files/json-fields.js";

/** More layers than any model has; see MAX_SIZE in JsonFields. */
const MAX_LAYERS = 4096;

export interface ModelDimensions {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layerCount: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly maxPositions: number;
}

/** Defaults of Transformers' configuration class for fields missing in config.json. */
export interface DimensionDefaults extends Omit<ModelDimensions, "keyValueHeads" | "headDim"> {
  /** Defaults to the number of heads. */
  readonly keyValueHeads?: number;
  /** Defaults to hiddenSize / heads. */
  readonly headDim?: number;
}

/**
 * Reads the sizes under the names shared by all architectures except GPT-2. @throws FILE_CORRUPT
 * for invalid values.
 */
export function readDimensions(config: JsonFields, defaults: DimensionDefaults): ModelDimensions {
  const heads = config.size("num_attention_heads", defaults.heads);
  const keyValueHeads = config.optionalSize("num_key_value_heads", defaults.keyValueHeads) ?? heads;
  if (heads % keyValueHeads !== 0)
    throw config.invalidFieldError("num_key_value_heads", `a divisor of num_attention_heads (${heads})`);
  const hiddenSize = config.size("hidden_size", defaults.hiddenSize);
  return {
    vocabSize: config.size("vocab_size", defaults.vocabSize),
    hiddenSize,
    intermediateSize: config.size("intermediate_size", defaults.intermediateSize),
    layerCount: readLayerCount(config, "num_hidden_layers", defaults.layerCount),
    heads,
    keyValueHeads,
    headDim: readHeadDim(config, hiddenSize, heads, defaults.headDim),
    maxPositions: config.size("max_position_embeddings", defaults.maxPositions),
  };
}

export function readLayerCount(config: JsonFields, field: string, fallback: number): number {
  return config.size(field, fallback, MAX_LAYERS);
}

/**
 * Returns `pad_token_id` as a row of the embedding (negative values count from the end), or
 * undefined.
 */
export function readPaddingToken(config: JsonFields, vocabSize: number, fallback?: number): number | undefined {
  const tokenId = config.optionalInteger("pad_token_id", fallback);
  const row = tokenId !== undefined && tokenId < 0 ? vocabSize + tokenId : tokenId;
  return row !== undefined && row >= 0 && row < vocabSize ? row : undefined;
}

function readHeadDim(config: JsonFields, hiddenSize: number, heads: number, fallback?: number): number {
  const headDim = config.optionalSize("head_dim", fallback);
  if (headDim !== undefined) return headDim;
  if (hiddenSize >= heads) return Math.floor(hiddenSize / heads);
  throw config.invalidFieldError("hidden_size", `at least num_attention_heads (${heads}), or a head_dim`);
}
