import type { HuggingFaceConfig } from "./hugging-face-config.js";

/** More layers than any model has; see HuggingFaceConfig's limit on sizes. */
const MAX_LAYERS = 4096;

export interface ModelDimensions {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layerCount: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly maxPositions: number;
}

/** Values for fields that config.json leaves out: those of Transformers' configuration class. */
export interface DimensionDefaults extends Omit<ModelDimensions, "keyValueHeads"> {
  /** Undefined: as many as there are heads. */
  readonly keyValueHeads?: number;
}

/** The sizes that all architectures but GPT-2 give under the same names. Throws FILE_CORRUPT for values that do not fit. */
export function readDimensions(config: HuggingFaceConfig, defaults: DimensionDefaults): ModelDimensions {
  const heads = config.size("num_attention_heads", defaults.heads);
  const keyValueHeads = config.optionalSize("num_key_value_heads", defaults.keyValueHeads) ?? heads;
  if (heads % keyValueHeads !== 0) {
    throw config.invalidFieldError("num_key_value_heads", `a divisor of num_attention_heads (${heads})`);
  }
  return {
    vocabSize: config.size("vocab_size", defaults.vocabSize),
    hiddenSize: config.size("hidden_size", defaults.hiddenSize),
    intermediateSize: config.size("intermediate_size", defaults.intermediateSize),
    layerCount: readLayerCount(config, "num_hidden_layers", defaults.layerCount),
    heads,
    keyValueHeads,
    maxPositions: config.size("max_position_embeddings", defaults.maxPositions),
  };
}

export function readLayerCount(config: HuggingFaceConfig, field: string, fallback: number): number {
  return config.size(field, fallback, MAX_LAYERS);
}

/** `pad_token_id` as a row of the embedding (from the end where it is negative); undefined where there is none. */
export function readPaddingToken(config: HuggingFaceConfig, vocabSize: number, fallback?: number): number | undefined {
  const tokenId = config.optionalInteger("pad_token_id", fallback);
  const row = tokenId !== undefined && tokenId < 0 ? vocabSize + tokenId : tokenId;
  return row !== undefined && row >= 0 && row < vocabSize ? row : undefined;
}

/** The size of a head: explicit, or the class's own default, or the hidden size shared out among the heads. */
export function readHeadDim(
  config: HuggingFaceConfig,
  { hiddenSize, heads }: ModelDimensions,
  fallback?: number,
): number {
  const headDim = config.optionalSize("head_dim", fallback);
  if (headDim !== undefined) return headDim;
  if (hiddenSize >= heads) return Math.floor(hiddenSize / heads);
  throw config.invalidFieldError("hidden_size", `at least num_attention_heads (${heads}), or a head_dim`);
}
