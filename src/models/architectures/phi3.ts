import { buildDecoderFields, buildPartialRope, getRmsNormEpsilon } from "../files/gguf/gguf-config.js";
import { decoderTensors } from "./llama-gguf.js";
import type { LayerNames } from "../../engine/nn/index.js";
import { readRope } from "./rope-config.js";
import { defineArchitecture } from "./architecture.js";
import { llamaNetwork, NO_BIASES } from "./llama-network.js";

/**
 * Phi 3, 3.5 and 4 (Phi3Config): Llama with fused query/key/value and gate/up projections,
 * LongRoPE, and partial rotary dimensions in Phi-4-mini.
 */
export const phi3 = defineArchitecture({
  modelTypes: ["phi3"],
  decoder: (config) => {
    const window = config.optionalSize("sliding_window");
    return llamaNetwork(config, {
      modelType: "phi3",
      defaults: {
        vocabSize: 32_064,
        hiddenSize: 3072,
        intermediateSize: 8192,
        layerCount: 32,
        heads: 32,
        maxPositions: 4096,
      },
      ropes: (context) => [
        readRope(config, {
          ...context,
          defaultPartialRotaryFactor: 1,
          defaultOriginalLength: 4096,
          aliases: { su: "longrope", yarn: "longrope" },
        }),
      ],
      biases: NO_BIASES,
      tieWordEmbeddings: false,
      paddingToken: 32_000,
      epsilon: 1e-5,
      layers: () => (layer) => ({ window, names: layerNames(layer) }),
    });
  },
  gguf: {
    name: "phi3",
    modelClass: "Phi3ForCausalLM",
    ...decoderTensors,
    layerTensors: {
      attn_norm: "input_layernorm",
      attn_qkv: "self_attn.qkv_proj",
      attn_output: "self_attn.o_proj",
      ffn_norm: "post_attention_layernorm",
      ffn_up: "mlp.gate_up_proj",
      ffn_down: "mlp.down_proj",
    },
    config: (source, sizes) => {
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
    },
  },
});

function layerNames(layer: number): LayerNames {
  const prefix = `model.layers.${layer}`;
  return {
    attentionNorm: `${prefix}.input_layernorm`,
    feedForwardNorm: `${prefix}.post_attention_layernorm`,
    queryKeyValue: `${prefix}.self_attn.qkv_proj`,
    attentionOutput: `${prefix}.self_attn.o_proj`,
    gateUp: `${prefix}.mlp.gate_up_proj`,
    down: `${prefix}.mlp.down_proj`,
  };
}
