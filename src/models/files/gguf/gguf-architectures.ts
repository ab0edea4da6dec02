/**
 * How llama.cpp renames (and rearranges) the tensors of each architecture, told as the way back to Hugging Face names.
 * A tensor's last part (.weight, .bias) stays.
 */
export interface GgufArchitecture {
  /** The name in general.architecture. */
  readonly name: string;
  /** The Hugging Face class that the model is. */
  readonly modelClass: string;
  /** Tensors outside of the layers: GGUF name to Hugging Face name. */
  readonly globalTensors: Readonly<Record<string, string>>;
  /** What stands before the layer's number in a Hugging Face name. */
  readonly layerPrefix: string;
  /** Tensors of a layer: the part after `blk.N.` to the part after the layer's number. */
  readonly layerTensors: Readonly<Record<string, string>>;
  /** Whether the rows of q and k are stored in pairs, for rotation of neighbours instead of halves. */
  readonly interleavedRotary?: boolean;
  /** Whether norm weights are stored with 1 added (Gemma's norms multiply by 1 + weight). */
  readonly shiftedNorms?: boolean;
  /** Layer tensors that are stored transposed: GPT-2's weights are [in, out] in Hugging Face's files. */
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
    shiftedNorms: true,
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

/** The architectures of GGUF files that can be read. */
export const ggufArchitectureNames: readonly string[] = [...byName.keys()];

/** The architecture of a name in general.architecture, or undefined. */
export function getGgufArchitecture(name: string): GgufArchitecture | undefined {
  return byName.get(name);
}
