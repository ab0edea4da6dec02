import {
  buildDecoderFields,
  buildRope,
  getRmsNormEpsilon,
  hasTensor,
  type GgufArchitecture,
} from "../files/gguf/gguf-config.js";

export const decoderTensors = {
  globalTensors: { token_embd: "model.embed_tokens", output_norm: "model.norm", output: "lm_head" },
  layerPrefix: "model.layers.",
};

export const attentionTensors = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
};

export const mlpTensors = { ffn_gate: "mlp.gate_proj", ffn_up: "mlp.up_proj", ffn_down: "mlp.down_proj" };

export const headNormTensors = { attn_q_norm: "self_attn.q_norm", attn_k_norm: "self_attn.k_norm" };

export const llamaLayerTensors = { ...attentionTensors, ffn_norm: "post_attention_layernorm", ...mlpTensors };

/** Builds the config fields of Llama-like models. */
export function createLlamaConfig(modelType: string): GgufArchitecture["config"] {
  return (source, sizes) => ({
    ...buildDecoderFields(modelType, source, sizes),
    head_dim: sizes.headSize,
    hidden_act: "silu",
    rms_norm_eps: getRmsNormEpsilon(source),
    attention_bias: hasTensor(source, "blk.0.attn_q.bias"),
    mlp_bias: hasTensor(source, "blk.0.ffn_up.bias"),
    rope_parameters: buildRope(source, sizes),
  });
}
