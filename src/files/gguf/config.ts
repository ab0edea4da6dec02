import { LlamaGymError } from "../../errors.js";
import { corrupt } from "../failure.js";
import type { JsonObject, JsonValue } from "../json.js";
import { ggufArchitectureNames, type GgufArchitecture } from "./architectures.js";
import type { GgufFields } from "./fields.js";
import type { GgufTensor } from "./header.js";
import { ropeParameters, type RopeSource } from "./rope.js";

/** What a `config.json` is made from. */
export interface ConfigSource {
  readonly fields: GgufFields;
  readonly architecture: GgufArchitecture;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  readonly rope: Pick<RopeSource, "frequencyFactors" | "longFactors" | "shortFactors">;
}

/** The sizes that all architectures share. */
export interface GgufSizes {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headSize: number;
}

/** Reads the sizes of a model from its metadata. Throws FILE_CORRUPT, MODEL_UNSUPPORTED for mixtures of experts. */
export function ggufSizes(fields: GgufFields, tensors: ReadonlyMap<string, GgufTensor>): GgufSizes {
  if ((fields.optional("expert_count") ?? 0) > 0) {
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
    throw corrupt(fields.path, `its metadata claims ${layers} layers, but it holds ${tensors.size} tensors`);
  }
  return {
    hidden,
    heads,
    layers,
    headSize: fields.optional("attention.key_length") ?? Math.floor(queryRows / heads),
    keyValueHeads: fields.optional("attention.head_count_kv") ?? heads,
  };
}

/** Transformers' `config.json` for a GGUF file, in the dialect of Transformers 5. */
export function ggufConfig(source: ConfigSource): JsonObject {
  const { fields, architecture, tensors } = source;
  return {
    architectures: [architecture.modelClass],
    ...bodies[architecture.name](source, ggufSizes(fields, tensors)),
    tie_word_embeddings: !tensors.has("output.weight"),
    vocab_size: tensors.get("token_embd.weight")?.shape[0] ?? fields.size("vocab_size"),
    bos_token_id: fields.index("tokenizer.ggml.bos_token_id") ?? null,
    eos_token_id: fields.index("tokenizer.ggml.eos_token_id") ?? null,
    pad_token_id: fields.index("tokenizer.ggml.padding_token_id") ?? null,
    dtype: "float32",
  };
}

type ConfigBody = (source: ConfigSource, sizes: GgufSizes) => JsonObject;

function rope({ fields, rope: tensors }: ConfigSource, { headSize }: GgufSizes, defaultTheta?: number): JsonObject {
  const dimensions = fields.optional("rope.dimension_count") ?? headSize;
  const maxPositions = fields.size("context_length");
  return ropeParameters({ fields, dimensions, maxPositions, ...tensors }, defaultTheta);
}

/** For models that rotate only a part of each head. */
function partialRope(source: ConfigSource, sizes: GgufSizes): JsonObject {
  const dimensions = source.fields.optional("rope.dimension_count") ?? sizes.headSize;
  return { ...rope(source, sizes), partial_rotary_factor: dimensions / sizes.headSize };
}

/** The fields that llama and the models after it share. */
function decoder(type: string, source: ConfigSource, sizes: GgufSizes): JsonObject {
  const { fields } = source;
  return {
    model_type: type,
    hidden_size: sizes.hidden,
    intermediate_size: feedForwardSize(source),
    num_hidden_layers: sizes.layers,
    num_attention_heads: sizes.heads,
    num_key_value_heads: sizes.keyValueHeads,
    max_position_embeddings: fields.size("context_length"),
    attention_dropout: 0,
  };
}

/** The width of the feed-forward layers: the inputs of the matrix that ends them, since the field is wrong in some files. */
function feedForwardSize({ fields, tensors }: ConfigSource): number {
  return tensors.get("blk.0.ffn_down.weight")?.shape[1] ?? fields.size("feed_forward_length");
}

function rmsNormEpsilon({ fields }: ConfigSource): number {
  return fields.number("attention.layer_norm_rms_epsilon");
}

function has({ tensors }: ConfigSource, tensor: string): boolean {
  return tensors.has(tensor);
}

function llama(type: string): ConfigBody {
  return (source, sizes) => ({
    ...decoder(type, source, sizes),
    head_dim: sizes.headSize,
    hidden_act: "silu",
    rms_norm_eps: rmsNormEpsilon(source),
    attention_bias: has(source, "blk.0.attn_q.bias"),
    mlp_bias: has(source, "blk.0.ffn_up.bias"),
    rope_parameters: rope(source, sizes),
  });
}

/** In every n-th layer, SmolLM3 uses no rotary positions; the file does not say so, but all of its models have n = 4. */
const SMOLLM3_NO_ROPE_INTERVAL = 4;

const smollm3: ConfigBody = (source, sizes) => ({
  ...llama("smollm3")(source, sizes),
  no_rope_layer_interval: SMOLLM3_NO_ROPE_INTERVAL,
  no_rope_layers: perLayer(sizes, (layer) => ((layer + 1) % SMOLLM3_NO_ROPE_INTERVAL === 0 ? 0 : 1)),
  use_sliding_window: false,
  sliding_window: null,
});

const qwen2: ConfigBody = (source, sizes) => ({
  ...decoder("qwen2", source, sizes),
  head_dim: sizes.headSize,
  hidden_act: "silu",
  rms_norm_eps: rmsNormEpsilon(source),
  use_sliding_window: false,
  sliding_window: null,
  rope_parameters: rope(source, sizes),
});

const qwen3: ConfigBody = (source, sizes) => ({
  ...qwen2(source, sizes),
  model_type: "qwen3",
  attention_bias: has(source, "blk.0.attn_q.bias"),
});

const GEMMA3_PATTERN = 6;
const GEMMA3_27B_LAYERS = 62;

/** Whether a Gemma 3 layer looks back only as far as the window: by a flag for each layer or by every n-th being full. */
function isSliding(fields: GgufFields, layer: number): boolean {
  const pattern = fields.raw("gemma3.attention.sliding_window_pattern");
  if (typeof pattern === "object") return pattern[layer] === true;
  const interval = typeof pattern === "number" && pattern >= 1 ? pattern : GEMMA3_PATTERN;
  return (layer + 1) % interval !== 0;
}

const gemma3: ConfigBody = (source, sizes) => {
  const { fields } = source;
  const window = fields.optional("attention.sliding_window") ?? null;
  const isFull = (layer: number): boolean => window === null || !isSliding(fields, layer);
  return {
    ...decoder("gemma3_text", source, sizes),
    head_dim: sizes.headSize,
    hidden_activation: "gelu_pytorch_tanh",
    rms_norm_eps: rmsNormEpsilon(source),
    attention_bias: false,
    // Not in the file: the 27B model alone scales by hidden / heads, the others by the size of a head.
    query_pre_attn_scalar: sizes.layers === GEMMA3_27B_LAYERS ? sizes.hidden / sizes.heads : sizes.headSize,
    attn_logit_softcapping: null,
    final_logit_softcapping: fields.optional("final_logit_softcapping") ?? null,
    sliding_window: window,
    layer_types: perLayer(sizes, (layer) => (isFull(layer) ? "full_attention" : "sliding_attention")),
    rope_parameters: {
      full_attention: rope(source, sizes, 1_000_000),
      sliding_attention: { rope_type: "default", rope_theta: fields.optional("rope.freq_base_swa") ?? 10_000 },
    },
  };
};

const phi: ConfigBody = (source, sizes) => ({
  ...decoder("phi", source, sizes),
  hidden_act: "gelu_new",
  layer_norm_eps: source.fields.number("attention.layer_norm_epsilon"),
  qk_layernorm: false,
  embd_pdrop: 0,
  resid_pdrop: 0,
  rope_parameters: partialRope(source, sizes),
});

const phi3: ConfigBody = (source, sizes) => {
  const { fields } = source;
  const maxPositions = fields.size("context_length");
  const window = fields.optional("attention.sliding_window") ?? 0;
  return {
    ...decoder("phi3", source, sizes),
    hidden_act: "silu",
    rms_norm_eps: rmsNormEpsilon(source),
    original_max_position_embeddings: fields.optional("rope.scaling.original_context_length") ?? maxPositions,
    sliding_window: window === 0 ? null : window,
    embd_pdrop: 0,
    resid_pdrop: 0,
    rope_parameters: partialRope(source, sizes),
  };
};

const gpt2: ConfigBody = (source, sizes) => ({
  model_type: "gpt2",
  n_embd: sizes.hidden,
  n_layer: sizes.layers,
  n_head: sizes.heads,
  n_positions: source.fields.size("context_length"),
  n_inner: feedForwardSize(source),
  activation_function: "gelu_new",
  layer_norm_epsilon: source.fields.number("attention.layer_norm_epsilon"),
  scale_attn_weights: true,
  scale_attn_by_inverse_layer_idx: false,
  reorder_and_upcast_attn: false,
  attn_pdrop: 0,
  embd_pdrop: 0,
  resid_pdrop: 0,
});

function perLayer<Value extends JsonValue>({ layers }: GgufSizes, value: (layer: number) => Value): Value[] {
  return Array.from({ length: layers }, (_, layer) => value(layer));
}

const bodies: Readonly<Record<string, ConfigBody>> = {
  llama: llama("llama"),
  smollm3,
  qwen2,
  qwen3,
  gemma3,
  phi2: phi,
  phi3,
  gpt2,
};
