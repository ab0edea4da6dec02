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
}

const decoder = {
  globalTensors: { token_embd: "model.embed_tokens", output_norm: "model.norm", output: "lm_head" },
  layerPrefix: "model.layers.",
};

const attention = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
};

const gatedMlp = { ffn_gate: "mlp.gate_proj", ffn_up: "mlp.up_proj", ffn_down: "mlp.down_proj" };

const headNorms = { attn_q_norm: "self_attn.q_norm", attn_k_norm: "self_attn.k_norm" };

const llamaLayer = { ...attention, ffn_norm: "post_attention_layernorm", ...gatedMlp };

const architectures: readonly GgufArchitecture[] = [
  { name: "llama", modelClass: "LlamaForCausalLM", ...decoder, layerTensors: llamaLayer, interleavedRotary: true },
  { name: "smollm3", modelClass: "SmolLM3ForCausalLM", ...decoder, layerTensors: llamaLayer, interleavedRotary: true },
  { name: "qwen2", modelClass: "Qwen2ForCausalLM", ...decoder, layerTensors: llamaLayer },
  { name: "qwen3", modelClass: "Qwen3ForCausalLM", ...decoder, layerTensors: { ...llamaLayer, ...headNorms } },
  {
    name: "gemma3",
    modelClass: "Gemma3ForCausalLM",
    ...decoder,
    layerTensors: {
      ...attention,
      ...headNorms,
      ...gatedMlp,
      post_attention_norm: "post_attention_layernorm",
      ffn_norm: "pre_feedforward_layernorm",
      post_ffw_norm: "post_feedforward_layernorm",
    },
    hasNormOffset: true,
  },
  {
    name: "phi2",
    modelClass: "PhiForCausalLM",
    ...decoder,
    globalTensors: { ...decoder.globalTensors, output_norm: "model.final_layernorm" },
    layerTensors: {
      ...attention,
      attn_output: "self_attn.dense",
      ffn_up: "mlp.fc1",
      ffn_down: "mlp.fc2",
    },
  },
  {
    name: "phi3",
    modelClass: "Phi3ForCausalLM",
    ...decoder,
    layerTensors: {
      attn_norm: "input_layernorm",
      attn_qkv: "self_attn.qkv_proj",
      attn_output: "self_attn.o_proj",
      ffn_norm: "post_attention_layernorm",
      ffn_up: "mlp.gate_up_proj",
      ffn_down: "mlp.down_proj",
    },
  },
  {
    name: "gpt2",
    modelClass: "GPT2LMHeadModel",
    globalTensors: {
      token_embd: "transformer.wte",
      position_embd: "transformer.wpe",
      output_norm: "transformer.ln_f",
      output: "lm_head",
    },
    layerPrefix: "transformer.h.",
    layerTensors: {
      attn_norm: "ln_1",
      attn_qkv: "attn.c_attn",
      attn_output: "attn.c_proj",
      ffn_norm: "ln_2",
      ffn_up: "mlp.c_fc",
      ffn_down: "mlp.c_proj",
    },
    transposed: ["attn_qkv", "attn_output", "ffn_up", "ffn_down"],
  },
];

const byName = new Map(architectures.map((architecture) => [architecture.name, architecture]));

/** Supported values of general.architecture. */
export const ggufArchitectureNames: readonly string[] = [...byName.keys()];

/** Returns the architecture of a general.architecture value, or undefined. */
export function getGgufArchitecture(name: string): GgufArchitecture | undefined {
  return byName.get(name);
}
