import { buildDecoderFields, buildRope, getRmsNormEpsilon, type GgufArchitecture } from "../files/gguf/gguf-config.js";
import { decoderTensors, llamaLayerTensors } from "./llama-gguf.js";
import { defineArchitecture } from "./architecture.js";
import type { JsonFields } from "../../core/files/json-fields.js";
import { getLayerWindows, readLayerTypes } from "./layer-types.js";
import { llamaNetwork } from "./llama-network.js";
import type { DimensionDefaults } from "./model-dimensions.js";

/** Defaults of Qwen2Config and Qwen3Config. */
export const QWEN_DIMENSIONS: DimensionDefaults = {
  vocabSize: 151_936,
  hiddenSize: 4096,
  intermediateSize: 22_016,
  layerCount: 32,
  heads: 32,
  keyValueHeads: 32,
  maxPositions: 32_768,
};

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
  decoder: (config) =>
    llamaNetwork(config, {
      modelType: "qwen2",
      defaults: QWEN_DIMENSIONS,
      biases: { queryKeyValue: true, attentionOutput: false, feedForward: false },
      tieWordEmbeddings: false,
      layers: (count) => {
        const windows = readQwenWindows(config, count);
        return (layer) => ({ window: windows[layer] });
      },
    }),
  gguf: {
    name: "qwen2",
    modelClass: "Qwen2ForCausalLM",
    ...decoderTensors,
    layerTensors: llamaLayerTensors,
    config: buildQwen2Config,
  },
});

/** Reads Qwen's windows: without `layer_types`, layers from `max_window_layers` on slide. */
export function readQwenWindows(config: JsonFields, layerCount: number): readonly (number | undefined)[] {
  const configuredWindow = config.optionalSize("sliding_window", 4096);
  const window = config.flag("use_sliding_window", false) ? configuredWindow : undefined;
  const firstSlidingLayer = config.count("max_window_layers", 28);
  const types = readLayerTypes(config, layerCount, (layer) =>
    window !== undefined && layer >= firstSlidingLayer ? "sliding_attention" : "full_attention",
  );
  return getLayerWindows(config, types, window);
}
