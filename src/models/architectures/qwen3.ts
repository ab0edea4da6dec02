import type { Architecture } from "./architecture.js";
import { headNormNames, llamaLayerNames, llamaNetwork } from "./llama-network.js";
import { qwenWindows } from "./qwen-windows.js";
import { readRope } from "./rope-config.js";
import { readHeadDim, readSizes } from "./sizes.js";

/** Qwen 3, dense (Qwen3Config): Llama with a norm on each head's query and key. */
export const qwen3: Architecture = (config) => {
  const sizes = readSizes(config, {
    vocabSize: 151_936,
    hiddenSize: 4096,
    intermediateSize: 22_016,
    layerCount: 32,
    heads: 32,
    keyValueHeads: 32,
    maxPositions: 32_768,
  });
  const headDim = readHeadDim(config, sizes, 128);
  const attention = config.flag("attention_bias", false);
  const windows = qwenWindows(config, sizes.layerCount);
  return llamaNetwork(config, {
    modelType: "qwen3",
    sizes,
    headDim,
    rope: readRope(config, { headDim, maxPositions: sizes.maxPositions }),
    biases: { queryKeyValue: attention, attentionOutput: attention, feedForward: false },
    tied: false,
    layer: (layer) => ({ window: windows[layer], names: { ...llamaLayerNames(layer), ...headNormNames(layer) } }),
  });
};
