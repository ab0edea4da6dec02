import { buildDecoderFields, buildRope, getRmsNormEpsilon, type GgufArchitecture } from "../files/gguf/gguf-config.js";
import { decoderTensors, llamaLayerTensors } from "./llama-gguf.js";
import { defineArchitecture } from "./architecture.js";
import { llamaNetwork } from "./llama-network.js";
import { readQwenWindows } from "./qwen-windows.js";
import { readRope } from "./rope-config.js";
import { readHeadDim, readDimensions } from "./model-dimensions.js";

export const buildQwen2Config: GgufArchitecture["config"] = (source, sizes) => ({
  ...buildDecoderFields("qwen2", source, sizes),
  head_dim: sizes.headSize,
  hidden_act: "silu",
  rms_norm_eps: getRmsNormEpsilon(source),
  use_sliding_window: false,
  sliding_window: null,
  rope_parameters: buildRope(source, sizes),
});

/** Qwen 2 and 2.5 (Qwen2Config): Llama with biases on queries, keys and values. */
export const qwen2 = defineArchitecture({
  modelTypes: ["qwen2"],
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
    const headDim = readHeadDim(config, sizes);
    const windows = readQwenWindows(config, sizes.layerCount);
    return llamaNetwork(config, {
      modelType: "qwen2",
      sizes,
      headDim,
      rope: readRope(config, { headDim, maxPositions: sizes.maxPositions }),
      biases: { queryKeyValue: true, attentionOutput: false, feedForward: false },
      tieWordEmbeddings: false,
      layer: (layer) => ({ window: windows[layer] }),
    });
  },
  gguf: {
    name: "qwen2",
    modelClass: "Qwen2ForCausalLM",
    ...decoderTensors,
    layerTensors: llamaLayerTensors,
    config: buildQwen2Config,
  },
});
