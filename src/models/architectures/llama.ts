import { decoderTensors, llamaLayerTensors, createLlamaConfig } from "./llama-gguf.js";
import { defineArchitecture } from "./architecture.js";
import type { DimensionDefaults } from "./model-dimensions.js";
import { llamaNetwork, NO_BIASES, readAttentionBiases } from "./llama-network.js";

/** Defaults of LlamaConfig and GraniteConfig. */
export const LLAMA_DIMENSIONS: DimensionDefaults = {
  vocabSize: 32_000,
  hiddenSize: 4096,
  intermediateSize: 11_008,
  layerCount: 32,
  heads: 32,
  maxPositions: 2048,
};

/** Llama 1 to 3.3, TinyLlama, SmolLM and SmolLM2 (Transformers' LlamaConfig). */
export const llama = defineArchitecture({
  modelTypes: ["llama"],
  decoder: (config) =>
    llamaNetwork(config, {
      modelType: "llama",
      defaults: LLAMA_DIMENSIONS,
      biases: { ...readAttentionBiases(config), feedForward: config.flag("mlp_bias", false) },
      tieWordEmbeddings: false,
    }),
  gguf: {
    name: "llama",
    modelClass: "LlamaForCausalLM",
    ...decoderTensors,
    layerTensors: llamaLayerTensors,
    interleavedRotary: true,
    config: createLlamaConfig("llama"),
  },
});

/**
 * Mistral 7B and later (MistralConfig): Llama with a sliding window on every layer unless it is
 * null.
 */
export const mistral = defineArchitecture({
  modelTypes: ["mistral"],
  decoder: (config) => {
    const window = config.optionalSize("sliding_window", 4096);
    return llamaNetwork(config, {
      modelType: "mistral",
      defaults: {
        vocabSize: 32_000,
        hiddenSize: 4096,
        intermediateSize: 14_336,
        layerCount: 32,
        heads: 32,
        keyValueHeads: 8,
        maxPositions: 131_072,
      },
      biases: NO_BIASES,
      tieWordEmbeddings: false,
      layers: () => () => ({ window }),
    });
  },
  exportGguf: llama.gguf,
});
