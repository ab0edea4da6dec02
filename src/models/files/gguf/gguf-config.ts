import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../file-errors.js";
import type { JsonObject, JsonValue } from "../json-file.js";
import { ggufArchitectureNames, type GgufArchitecture } from "./gguf-architectures.js";
import type { GgufFields } from "./gguf-fields.js";
import type { GgufTensor } from "./gguf-header.js";
import { buildRopeParameters, type RopeSource } from "./rope-parameters.js";

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
  if ((fields.optionalNumber("expert_count") ?? 0) > 0) {
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `${fields.path} is a mixture of experts (${fields.architecture}.expert_count), which is not supported. ` +
        `Supported: dense models of ${ggufArchitectureNames.join(", ")}.`,
    );
  }
  const hidden = fields.size("embedding_length");
  const heads = fields.size("attention.head_count");
  const queryRows = tensors.get("blk.0.attn_q.weight")?.shape[0] ?? hidden;
  const layers = fields.size("block_count");
  if (layers > tensors.size) {
    throw corruptFileError(fields.path, `its metadata claims ${layers} layers, but it holds ${tensors.size} tensors`);
  }
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
    ...configBuilders[architecture.name](source, readGgufSizes(fields, tensors)),
    tie_word_embeddings: !tensors.has("output.weight"),
    vocab_size: tensors.get("token_embd.weight")?.shape[0] ?? fields.size("vocab_size"),
    bos_token_id: fields.index("tokenizer.ggml.bos_token_id") ?? null,
    eos_token_id: fields.index("tokenizer.ggml.eos_token_id") ?? null,
    pad_token_id: fields.index("tokenizer.ggml.padding_token_id") ?? null,
    dtype: "float32",
  };
}

type ConfigBuilder = (source: GgufConfigSource, sizes: GgufDimensions) => JsonObject;

function buildRope(
  { fields, rope: tensors }: GgufConfigSource,
  { headSize }: GgufDimensions,
  defaultTheta?: number,
): JsonObject {
  const dimensions = fields.optionalNumber("rope.dimension_count") ?? headSize;
  const maxPositions = fields.size("context_length");
  return buildRopeParameters({ fields, dimensions, maxPositions, ...tensors }, defaultTheta);
}

/** For models with partial rotary dimensions. */
function buildPartialRope(source: GgufConfigSource, sizes: GgufDimensions): JsonObject {
  const dimensions = source.fields.optionalNumber("rope.dimension_count") ?? sizes.headSize;
  return { ...buildRope(source, sizes), partial_rotary_factor: dimensions / sizes.headSize };
}

/** Fields common to Llama-like models. */
function buildDecoderFields(type: string, source: GgufConfigSource, sizes: GgufDimensions): JsonObject {
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

/** Returns the feed-forward width from the down projection, as the metadata field is wrong in some files. */
function getFeedForwardSize({ fields, tensors }: GgufConfigSource): number {
  return tensors.get("blk.0.ffn_down.weight")?.shape[1] ?? fields.size("feed_forward_length");
}

function getRmsNormEpsilon({ fields }: GgufConfigSource): number {
  return fields.number("attention.layer_norm_rms_epsilon");
}

function hasTensor({ tensors }: GgufConfigSource, tensor: string): boolean {
  return tensors.has(tensor);
}

function createLlamaBuilder(type: string): ConfigBuilder {
  return (source, sizes) => ({
    ...buildDecoderFields(type, source, sizes),
    head_dim: sizes.headSize,
    hidden_act: "silu",
    rms_norm_eps: getRmsNormEpsilon(source),
    attention_bias: hasTensor(source, "blk.0.attn_q.bias"),
    mlp_bias: hasTensor(source, "blk.0.ffn_up.bias"),
    rope_parameters: buildRope(source, sizes),
  });
}

/** SmolLM3 has no rotary positions in every fourth layer, which GGUF does not store. */
const SMOLLM3_NO_ROPE_INTERVAL = 4;

const smollm3: ConfigBuilder = (source, sizes) => ({
  ...createLlamaBuilder("smollm3")(source, sizes),
  no_rope_layer_interval: SMOLLM3_NO_ROPE_INTERVAL,
  no_rope_layers: mapLayers(sizes, (layer) => ((layer + 1) % SMOLLM3_NO_ROPE_INTERVAL === 0 ? 0 : 1)),
  use_sliding_window: false,
  sliding_window: null,
});

const qwen2: ConfigBuilder = (source, sizes) => ({
  ...buildDecoderFields("qwen2", source, sizes),
  head_dim: sizes.headSize,
  hidden_act: "silu",
  rms_norm_eps: getRmsNormEpsilon(source),
  use_sliding_window: false,
  sliding_window: null,
  rope_parameters: buildRope(source, sizes),
});

const qwen3: ConfigBuilder = (source, sizes) => ({
  ...qwen2(source, sizes),
  model_type: "qwen3",
  attention_bias: hasTensor(source, "blk.0.attn_q.bias"),
});

const GEMMA3_SLIDING_WINDOW_PATTERN = 6;
const GEMMA3_27B_LAYERS = 62;

/** Whether a Gemma 3 layer is sliding, by a flag per layer or an interval of full layers. */
function isSliding(fields: GgufFields, layer: number): boolean {
  const pattern = fields.raw("gemma3.attention.sliding_window_pattern");
  if (typeof pattern === "object") return pattern[layer] === true;
  const interval = typeof pattern === "number" && pattern >= 1 ? pattern : GEMMA3_SLIDING_WINDOW_PATTERN;
  return (layer + 1) % interval !== 0;
}

const gemma3: ConfigBuilder = (source, sizes) => {
  const { fields } = source;
  const window = fields.optionalNumber("attention.sliding_window") ?? null;
  const isFull = (layer: number): boolean => window === null || !isSliding(fields, layer);
  return {
    ...buildDecoderFields("gemma3_text", source, sizes),
    head_dim: sizes.headSize,
    hidden_activation: "gelu_pytorch_tanh",
    rms_norm_eps: getRmsNormEpsilon(source),
    attention_bias: false,
    // Not stored: only the 27B model scales by hidden / heads instead of the head size.
    query_pre_attn_scalar: sizes.layers === GEMMA3_27B_LAYERS ? sizes.hidden / sizes.heads : sizes.headSize,
    attn_logit_softcapping: null,
    final_logit_softcapping: fields.optionalNumber("final_logit_softcapping") ?? null,
    sliding_window: window,
    layer_types: mapLayers(sizes, (layer) => (isFull(layer) ? "full_attention" : "sliding_attention")),
    rope_parameters: {
      full_attention: buildRope(source, sizes, 1_000_000),
      sliding_attention: { rope_type: "default", rope_theta: fields.optionalNumber("rope.freq_base_swa") ?? 10_000 },
    },
  };
};

const phi: ConfigBuilder = (source, sizes) => ({
  ...buildDecoderFields("phi", source, sizes),
  hidden_act: "gelu_new",
  layer_norm_eps: source.fields.number("attention.layer_norm_epsilon"),
  qk_layernorm: false,
  embd_pdrop: 0,
  resid_pdrop: 0,
  rope_parameters: buildPartialRope(source, sizes),
});

const phi3: ConfigBuilder = (source, sizes) => {
  const { fields } = source;
  const maxPositions = fields.size("context_length");
  const window = fields.optionalNumber("attention.sliding_window") ?? 0;
  return {
    ...buildDecoderFields("phi3", source, sizes),
    hidden_act: "silu",
    rms_norm_eps: getRmsNormEpsilon(source),
    original_max_position_embeddings: fields.optionalNumber("rope.scaling.original_context_length") ?? maxPositions,
    sliding_window: window === 0 ? null : window,
    embd_pdrop: 0,
    resid_pdrop: 0,
    rope_parameters: buildPartialRope(source, sizes),
  };
};

const gpt2: ConfigBuilder = (source, sizes) => ({
  model_type: "gpt2",
  n_embd: sizes.hidden,
  n_layer: sizes.layers,
  n_head: sizes.heads,
  n_positions: source.fields.size("context_length"),
  n_inner: getFeedForwardSize(source),
  activation_function: "gelu_new",
  layer_norm_epsilon: source.fields.number("attention.layer_norm_epsilon"),
  scale_attn_weights: true,
  scale_attn_by_inverse_layer_idx: false,
  reorder_and_upcast_attn: false,
  attn_pdrop: 0,
  embd_pdrop: 0,
  resid_pdrop: 0,
});

function mapLayers<Value extends JsonValue>({ layers }: GgufDimensions, value: (layer: number) => Value): Value[] {
  return Array.from({ length: layers }, (_, layer) => value(layer));
}

const configBuilders: Readonly<Record<string, ConfigBuilder>> = {
  llama: createLlamaBuilder("llama"),
  smollm3,
  qwen2,
  qwen3,
  gemma3,
  phi2: phi,
  phi3,
  gpt2,
};
