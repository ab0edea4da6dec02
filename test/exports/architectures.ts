const common = { hidden_size: 32, max_position_embeddings: 64 };
const multipliers = {
  embedding_multiplier: 6,
  attention_multiplier: 0.2,
  residual_multiplier: 0.6,
  logits_scaling: 4,
};

/** Fields of config.json by model_type, of small models that llama.cpp computes. */
export const ARCHITECTURES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  llama: {
    ...common,
    rope_theta: 10_000,
    rope_scaling: {
      rope_type: "llama3",
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 32,
    },
  },
  mistral: { ...common, sliding_window: null, tie_word_embeddings: false },
  smollm3: { ...common, num_hidden_layers: 4 },
  qwen2: { ...common, rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 16 } },
  qwen3: { ...common, head_dim: 16 },
  phi: { ...common, partial_rotary_factor: 0.5, tie_word_embeddings: false },
  phi3: { ...common, sliding_window: null, pad_token_id: 0, original_max_position_embeddings: 32 },
  gemma3_text: { ...common, num_hidden_layers: 6, head_dim: 8, query_pre_attn_scalar: 8, sliding_window: 8 },
  gemma2: {
    ...common,
    num_hidden_layers: 4,
    head_dim: 8,
    query_pre_attn_scalar: 8,
    sliding_window: 8,
    attn_logit_softcapping: 5,
    final_logit_softcapping: 30,
  },
  olmo2: common,
  granite: { ...common, ...multipliers },
  granitemoehybrid: {
    ...common,
    ...multipliers,
    num_local_experts: 0,
    shared_intermediate_size: 48,
    layer_types: ["attention", "attention"],
    position_embedding_type: "rope",
  },
  gpt2: { n_embd: 32, n_head: 4, n_layer: 2, n_positions: 64, n_inner: 64 },
};

/** The same of models that cannot be exported to GGUF. */
export const ONNX_ONLY: typeof ARCHITECTURES = {
  gpt_neox: { ...common, num_attention_heads: 2, num_key_value_heads: 2, rotary_pct: 0.5 },
};
