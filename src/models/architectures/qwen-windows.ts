import type { HuggingFaceConfig } from "./hugging-face-config.js";
import { layerWindows, readLayerTypes } from "./layer-types.js";

/** Qwen's windows: unless `layer_types` says otherwise, the layers from `max_window_layers` on slide. */
export function qwenWindows(config: HuggingFaceConfig, layerCount: number): readonly (number | undefined)[] {
  const given = config.optionalSize("sliding_window", 4096);
  const window = config.flag("use_sliding_window", false) ? given : undefined;
  const fullLayers = config.count("max_window_layers", 28);
  const types = readLayerTypes(config, layerCount, (layer) =>
    window !== undefined && layer >= fullLayers ? "sliding_attention" : "full_attention",
  );
  return layerWindows(config, types, window);
}
