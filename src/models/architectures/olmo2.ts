import { attentionTensors, createLlamaConfig, decoderTensors, headNormTensors, mlpTensors } from "./llama-gguf.js";
import { defineArchitecture } from "./architecture.js";
import type { LayerNames } from "../../engine/nn/index.js";
import { LLAMA_DIMENSIONS } from "./llama.js";
import { headNormNames, llamaLayerNames, llamaNetwork, readAttentionBiases } from "./llama-network.js";

const { attn_norm: _, ...projectionTensors } = attentionTensors;

/**
 * OLMo 2 (Olmo2Config): Llama with norms after attention and feed-forward in place of those before
 * them, and a norm on all heads' queries and on all heads' keys.
 */
export const olmo2 = defineArchitecture({
  modelTypes: ["olmo2"],
  decoder: (config) => ({
    ...llamaNetwork(config, {
      modelType: "olmo2",
      defaults: { ...LLAMA_DIMENSIONS, vocabSize: 50_304 },
      biases: readAttentionBiases(config),
      tieWordEmbeddings: false,
      epsilon: 1e-5,
      paddingToken: 1,
      layers: () => (layer) => ({ names: layerNames(layer) }),
    }),
    queryKeyNorm: "all",
  }),
  gguf: {
    name: "olmo2",
    modelClass: "Olmo2ForCausalLM",
    ...decoderTensors,
    layerTensors: {
      ...projectionTensors,
      ...headNormTensors,
      ...mlpTensors,
      post_attention_norm: "post_attention_layernorm",
      post_ffw_norm: "post_feedforward_layernorm",
    },
    config: createLlamaConfig("olmo2"),
  },
});

function layerNames(layer: number): LayerNames {
  const { attentionNorm: __, feedForwardNorm: ___, ...modules } = llamaLayerNames(layer);
  const prefix = `model.layers.${layer}`;
  return {
    ...modules,
    ...headNormNames(layer),
    postAttentionNorm: `${prefix}.post_attention_layernorm`,
    postFeedForwardNorm: `${prefix}.post_feedforward_layernorm`,
  };
}
