import { decoderTensors, llamaLayerTensors, createLlamaConfig } from "./llama-gguf.js";
import { defineArchitecture } from "./architecture.js";
import { llamaNetwork } from "./llama-network.js";
import { readRope } from "./rope-config.js";
import { readHeadDim, readDimensions } from "./model-dimensions.js";

/** Llama 1 to 3.3, TinyLlama, SmolLM and SmolLM2 (Transformers' LlamaConfig). */
export const llama = defineArchitecture({
  modelTypes: ["llama"],
  decoder: (config) => {
    const sizes = readDimensions(config, {
      vocabSize: 32_000,
      hiddenSize: 4096,
      intermediateSize: 11_008,
      layerCount: 32,
      heads: 32,
      maxPositions: 2048,
    });
    const headDim = readHeadDim(config, sizes);
    const attentionBias = config.flag("attention_bias", false);
    return llamaNetwork(config, {
      modelType: "llama",
      sizes,
      headDim,
      rope: readRope(config, { headDim, maxPositions: sizes.maxPositions }),
      biases: {
        queryKeyValue: attentionBias,
        attentionOutput: attentionBias,
        feedForward: config.flag("mlp_bias", false),
      },
      tieWordEmbeddings: false,
    });
  },
  gguf: {
    name: "llama",
    modelClass: "LlamaForCausalLM",
    ...decoderTensors,
    layerTensors: llamaLayerTensors,
    interleavedRotary: true,
    config: createLlamaConfig("llama"),
  },
});
