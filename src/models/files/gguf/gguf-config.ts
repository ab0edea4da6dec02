import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../../../core/files/file-errors.js";
import type { JsonObject, JsonValue } from "../../../core/json.js";
import type { GgufFields } from "./gguf-fields.js";
import type { GgufTensor } from "./gguf-header.js";
import { buildRopeParameters, type RopeSource } from "./rope-parameters.js";

/**
 * Mapping from llama.cpp's tensor names and layouts of an architecture back to Hugging Face's.
 * Suffixes (.weight, .bias) are kept.
 */
export interface GgufArchitecture {
  /** Value of general.architecture. */
  readonly name: string;
  /** Transformers' model class. */
  readonly modelClass: string;
  /** Hugging Face names of tensors outside the layers. */
  readonly globalTensors: Readonly<Record<string, string>>;
  /** Prefix of the layer number in Hugging Face names. */
  readonly layerPrefix: string;
  /** Hugging Face names within a layer, by the part after `blk.N.`. */
  readonly layerTensors: Readonly<Record<string, string>>;
  /** Whether rows of q and k are interleaved for rotating adjacent pairs instead of halves. */
  readonly interleavedRotary?: boolean;
  /** Whether norm weights are stored with 1 added (Gemma's norms multiply by 1 + weight). */
  readonly hasNormOffset?: boolean;
  /** Layer tensors stored transposed: GPT-2's weights are [in, out] in Hugging Face's files. */
  readonly transposed?: readonly string[];
  /** Names of both halves of the rows of layer tensors that llama.cpp has in two. */
  readonly halves?: Readonly<Record<string, readonly [string, string]>>;
  /** Builds the architecture's own fields of Transformers 5's `config.json`. */
  readonly config: (source: GgufConfigSource, sizes: GgufDimensions) => JsonObject;
}

/** Inputs for building a `config.json`. */
export interface GgufConfigSource {
  readonly fields: GgufFields;
  readonly architecture: GgufArchitecture;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  readonly rope: Pick<RopeSource, "frequencyFactors" | "longFactors" | "shortFactors">;
}

/** Sizes common to all architectures. */
export interface GgufDimensions {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headSize: number;
}

/** Reads a model's sizes. @throws FILE_CORRUPT, MODEL_UNSUPPORTED for mixtures of experts. */
export function readGgufSizes(fields: GgufFields, tensors: ReadonlyMap<string, GgufTensor>): GgufDimensions {
  if ((fields.optionalNumber("expert_count") ?? 0) > 0)
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `${fields.path} is a mixture of experts (${fields.architecture}.expert_count), which is not supported. Use a dense model.`,
    );
  const hidden = fields.size("embedding_length");
  const heads = fields.size("attention.head_count");
  const queryRows = tensors.get("blk.0.attn_q.weight")?.shape[0] ?? hidden;
  const layers = fields.size("block_count");
  if (layers > tensors.size)
    throw corruptFileError(fields.path, `its metadata claims ${layers} layers, but it holds ${tensors.size} tensors`);
  return {
    hidden,
    heads,
    layers,
    headSize: fields.optionalNumber("attention.key_length") ?? Math.floor(queryRows / heads),
    keyValueHeads: fields.optionalNumber("attention.head_count_kv") ?? heads,
  };
}

/** Builds Transformers 5's `config.json` for a GGUF file. */
export function buildGgufConfig(source: GgufConfigSource): JsonObject {
  const { fields, architecture, tensors } = source;
  return {
    architectures: [architecture.modelClass],
    ...architecture.config(source, readGgufSizes(fields, tensors)),
    tie_word_embeddings: !tensors.has("output.weight"),
    vocab_size: tensors.get("token_embd.weight")?.shape[0] ?? fields.size("vocab_size"),
    bos_token_id: fields.index("tokenizer.ggml.bos_token_id") ?? null,
    eos_token_id: fields.index("tokenizer.ggml.eos_token_id") ?? null,
    pad_token_id: fields.index("tokenizer.ggml.padding_token_id") ?? null,
    dtype: "float32",
  };
}

export function buildRope(
  { fields, rope: tensors }: GgufConfigSource,
  { headSize }: GgufDimensions,
  defaultTheta?: number,
): JsonObject {
  const dimensions = fields.optionalNumber("rope.dimension_count") ?? headSize;
  const maxPositions = fields.size("context_length");
  return buildRopeParameters({ fields, dimensions, maxPositions, ...tensors }, defaultTheta);
}

/** For models with partial rotary dimensions. */
export function buildPartialRope(source: GgufConfigSource, sizes: GgufDimensions): JsonObject {
  const dimensions = source.fields.optionalNumber("rope.dimension_count") ?? sizes.headSize;
  return { ...buildRope(source, sizes), partial_rotary_factor: dimensions / sizes.headSize };
}

/** Fields common to Llama-like models. */
export function buildDecoderFields(type: string, source: GgufConfigSource, sizes: GgufDimensions): JsonObject {
  const { fields } = source;
  return {
    model_type: type,
    hidden_size: sizes.hidden,
    intermediate_size: getFeedForwardSize(source),
    num_hidden_layers: sizes.layers,
    num_attention_heads: sizes.heads,
    num_key_value_heads: sizes.keyValueHeads,
    max_position_embeddings: fields.size("context_length"),
    attention_dropout: 0,
  };
}

/**
 * Returns the feed-forward width from the down projection, as the metadata field is wrong in some
 * files.
 */
export function getFeedForwardSize({ fields, tensors }: GgufConfigSource): number {
  return tensors.get("blk.0.ffn_down.weight")?.shape[1] ?? fields.size("feed_forward_length");
}

export function getRmsNormEpsilon({ fields }: GgufConfigSource): number {
  return fields.number("attention.layer_norm_rms_epsilon");
}

export function hasTensor({ tensors }: GgufConfigSource, tensor: string): boolean {
  return tensors.has(tensor);
}

export function mapLayers<Value extends JsonValue>(
  { layers }: GgufDimensions,
  value: (layer: number) => Value,
): Value[] {
  return Array.from({ length: layers }, (_, layer) => value(layer));
}
