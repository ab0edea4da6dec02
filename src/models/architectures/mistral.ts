import { defineArchitecture } from "./architecture.js";
import { llama } from "./llama.js";
import { llamaNetwork, NO_BIASES } from "./llama-network.js";

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
