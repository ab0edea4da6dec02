import { buildRope, mapLayers } from "../files/gguf/gguf-config.js";
import type { GgufFields } from "../files/gguf/gguf-fields.js";
import { decoderTensors, headNormTensors } from "./llama-gguf.js";
import type { RopeConfig } from "../../engine/nn/index.js";
import { defineArchitecture } from "./architecture.js";
import { JsonFields } from "../../core/files/json-fields.js";
import { getLayerWindows, readLayerTypes } from "./layer-types.js";
import { buildGemmaFields, gemmaLayerNames, gemmaLayerTensors, toGemmaNetwork } from "./gemma2.js";
import { headNormNames, llamaNetwork, readAttentionBiases } from "./llama-network.js";
import { readRopeObject, type RopeContext } from "./rope-config.js";

const SLIDING_WINDOW_PATTERN = 6;
const LAYERS_27B = 62;

/** Whether a Gemma 3 layer is sliding, by a flag per layer or an interval of full layers. */
function isSliding(fields: GgufFields, layer: number): boolean {
  const pattern = fields.raw("gemma3.attention.sliding_window_pattern");
  if (typeof pattern === "object") return pattern[layer] === true;
  const interval = typeof pattern === "number" && pattern >= 1 ? pattern : SLIDING_WINDOW_PATTERN;
  return (layer + 1) % interval !== 0;
}

/**
 * Gemma 3's text models (Gemma3TextConfig): norms before and after attention and feed-forward with
 * 1 + weight, scaled embeddings, query and key norms, five sliding layers per full one with
 * separate rotary bases. `attn_logit_softcapping` is ignored, as in Transformers' Gemma 3.
 */
export const gemma3 = defineArchitecture({
  modelTypes: ["gemma3_text"],
  decoder: (config) => {
    const network = llamaNetwork(config, {
      modelType: "gemma3_text",
      defaults: {
        vocabSize: 262_208,
        hiddenSize: 2304,
        intermediateSize: 9216,
        layerCount: 26,
        heads: 8,
        keyValueHeads: 4,
        headDim: 256,
        maxPositions: 131_072,
      },
      ropes: (context) => readRopes(config, context),
      biases: readAttentionBiases(config),
      tieWordEmbeddings: true,
      paddingToken: 0,
      layers: (count) => {
        const slidingPattern = config.size("sliding_window_pattern", 6);
        const types = readLayerTypes(config, count, (layer) =>
          (layer + 1) % slidingPattern === 0 ? "full_attention" : "sliding_attention",
        );
        const windows = getLayerWindows(config, types, config.optionalSize("sliding_window", 4096));
        return (layer) => ({
          names: { ...gemmaLayerNames(layer), ...headNormNames(layer) },
          rope: types[layer] === "full_attention" ? 0 : 1,
          window: windows[layer],
        });
      },
    });
    return {
      ...toGemmaNetwork(config, network),
      logitSoftcap: config.optionalPositive("final_logit_softcapping"),
    };
  },
  gguf: {
    name: "gemma3",
    modelClass: "Gemma3ForCausalLM",
    ...decoderTensors,
    layerTensors: { ...gemmaLayerTensors, ...headNormTensors },
    hasNormOffset: true,
    config: (source, sizes) => {
      const { fields } = source;
      const window = fields.optionalNumber("attention.sliding_window") ?? null;
      const isFull = (layer: number): boolean => window === null || !isSliding(fields, layer);
      return {
        ...buildGemmaFields("gemma3_text", source, sizes, LAYERS_27B),
        attn_logit_softcapping: null,
        final_logit_softcapping: fields.optionalNumber("final_logit_softcapping") ?? null,
        sliding_window: window,
        layer_types: mapLayers(sizes, (layer) => (isFull(layer) ? "full_attention" : "sliding_attention")),
        rope_parameters: {
          full_attention: buildRope(source, sizes, 1_000_000),
          sliding_attention: {
            rope_type: "default",
            rope_theta: fields.optionalNumber("rope.freq_base_swa") ?? 10_000,
          },
        },
      };
    },
  },
});

/**
 * Reads the ropes of full and sliding layers. The older fields scale full layers only, and only by
 * `rope_type`: as in Transformers, `type` is ignored next to the default kind.
 */
function readRopes(config: JsonFields, context: RopeContext): [full: RopeConfig, sliding: RopeConfig] {
  const parameters = config.object("rope_parameters");
  const fullFields = parameters?.object("full_attention")?.json ?? { rope_type: "default" };
  const full = { ...fullFields, ...config.object("rope_scaling")?.json };
  const owner = parameters === undefined ? "rope_scaling" : "rope_parameters.full_attention";
  return [
    readRopeObject(config, new JsonFields(full, config.path, owner), config.positive("rope_theta", 1_000_000), context),
    readRopeObject(
      config,
      parameters?.object("sliding_attention"),
      config.positive("rope_local_base_freq", 10_000),
      context,
    ),
  ];
}
