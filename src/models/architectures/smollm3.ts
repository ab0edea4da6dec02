import { mapLayers } from "../files/gguf/gguf-config.js";
import { decoderTensors, llamaLayerTensors, createLlamaConfig } from "./llama-gguf.js";
import { readRope } from "./rope-config.js";
import { defineArchitecture } from "./architecture.js";
import type { JsonFields } from "../../core/files/json-fields.js";
import { getLayerWindows, readLayerTypes } from "./layer-types.js";
import { llamaNetwork, readAttentionBiases } from "./llama-network.js";

/** SmolLM3 has no rotary positions in every fourth layer, which GGUF does not store. */
const NO_ROPE_INTERVAL = 4;

/** SmolLM 3 (SmolLM3Config): Llama without positions in every fourth layer. */
export const smollm3 = defineArchitecture({
  modelTypes: ["smollm3"],
  decoder: (config) =>
    llamaNetwork(config, {
      modelType: "smollm3",
      defaults: {
        vocabSize: 128_256,
        hiddenSize: 2048,
        intermediateSize: 11_008,
        layerCount: 36,
        heads: 16,
        keyValueHeads: 4,
        maxPositions: 32_768,
      },
      ropes: (context) => [readRope(config, { ...context, defaultTheta: 2_000_000 })],
      biases: { ...readAttentionBiases(config), feedForward: config.flag("mlp_bias", false) },
      tieWordEmbeddings: true,
      paddingToken: 128_004,
      layers: (count) => {
        const hasRope = readRotaryLayers(config, count);
        const window = config.optionalSize("sliding_window");
        const usesSlidingWindow = config.flag("use_sliding_window", false) && window !== undefined;
        const types = readLayerTypes(config, count, (layer) =>
          usesSlidingWindow && !hasRope[layer] ? "sliding_attention" : "full_attention",
        );
        const windows = getLayerWindows(config, types, window);
        return (layer) => ({ rope: hasRope[layer] ? 0 : undefined, window: windows[layer] });
      },
    }),
  gguf: {
    name: "smollm3",
    modelClass: "SmolLM3ForCausalLM",
    ...decoderTensors,
    layerTensors: llamaLayerTensors,
    interleavedRotary: true,
    config: (source, sizes) => ({
      ...createLlamaConfig("smollm3")(source, sizes),
      no_rope_layer_interval: NO_ROPE_INTERVAL,
      no_rope_layers: mapLayers(sizes, (layer) => ((layer + 1) % NO_ROPE_INTERVAL === 0 ? 0 : 1)),
      use_sliding_window: false,
      sliding_window: null,
    }),
  },
});

/**
 * Reads `no_rope_layers`, which despite its name is 1 for layers with rotary positions and 0 for
 * those without.
 */
function readRotaryLayers(config: JsonFields, layerCount: number): readonly boolean[] {
  const list = config.numbers("no_rope_layers");
  if (list === undefined) {
    const interval = config.size("no_rope_layer_interval", 4);
    return Array.from({ length: layerCount }, (_, layer) => (layer + 1) % interval !== 0);
  }
  if (list.length >= layerCount) return list.slice(0, layerCount).map((value) => value !== 0);
  throw config.invalidFieldError("no_rope_layers", `a list of 0 or 1 for each of the ${layerCount} layers`);
}
