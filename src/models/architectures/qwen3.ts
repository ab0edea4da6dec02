import { hasTensor } from "../files/gguf/gguf-config.js";
import { decoderTensors, headNormTensors, llamaLayerTensors } from "./llama-gguf.js";
import { buildQwen2Config } from "./qwen2.js";
import { defineArchitecture } from "./architecture.js";
import { headNormNames, llamaLayerNames, llamaNetwork } from "./llama-network.js";
import { readQwenWindows } from "./qwen-windows.js";
import { readRope } from "./rope-config.js";
import { readHeadDim, readDimensions } from "./model-dimensions.js";

/** Qwen 3, dense (Qwen3Config): Llama with a norm on each head's query and key. */
export const qwen3 = defineArchitecture({
  modelTypes: ["qwen3"],
  decoder: (config) => {
    const sizes = readDimensions(config, {
      vocabSize: 151_936,
      hiddenSize: 4096,
      intermediateSize: 22_016,
      layerCount: 32,
      heads: 32,
      keyValueHeads: 32,
      maxPositions: 32_768,
    });
    const headDim = readHeadDim(config, sizes, 128);
    const attentionBias = config.flag("attention_bias", false);
    const windows = readQwenWindows(config, sizes.layerCount);
    return llamaNetwork(config, {
      modelType: "qwen3",
      sizes,
      headDim,
      rope: readRope(config, { headDim, maxPositions: sizes.maxPositions }),
      biases: { queryKeyValue: attentionBias, attentionOutput: attentionBias, feedForward: false },
      tieWordEmbeddings: false,
      layer: (layer) => ({ window: windows[layer], names: { ...llamaLayerNames(layer), ...headNormNames(layer) } }),
    });
  },
  gguf: {
    name: "qwen3",
    modelClass: "Qwen3ForCausalLM",
    ...decoderTensors,
    layerTensors: { ...llamaLayerTensors, ...headNormTensors },
    config: (source, sizes) => ({
      ...buildQwen2Config(source, sizes),
      model_type: "qwen3",
      attention_bias: hasTensor(source, "blk.0.attn_q.bias"),
    }),
  },
});
