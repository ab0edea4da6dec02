import type { Architecture } from "./architecture.js";
import { llamaNetwork } from "./llama-network.js";
import { readQwenWindows } from "./qwen-windows.js";
import { readRope } from "./rope-config.js";
import { readHeadDim, readDimensions } from "./model-dimensions.js";

/** Qwen 2 and 2.5 (Qwen2Config): Llama with biases on queries, keys and values. */
export const qwen2: Architecture = (config) => {
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
};
