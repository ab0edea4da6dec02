import type { JsonFields } from "../../core/files/json-fields.js";
import type { DimensionDefaults } from "./model-dimensions.js";
import { getLayerWindows, readLayerTypes } from "./layer-types.js";

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
