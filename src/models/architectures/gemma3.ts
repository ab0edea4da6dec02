import type { DecoderConfig, LayerNames, RopeConfig } from "../../engine/nn/decoder-config.js";
import { readActivation } from "./read-activation.js";
import type { Architecture } from "./architecture.js";
import { HuggingFaceConfig } from "./hugging-face-config.js";
import { getLayerWindows, readLayerTypes } from "./layer-types.js";
import { headNormNames, llamaLayerNames, llamaNetwork } from "./llama-network.js";
import { readRopeObject, type RopeContext } from "./rope-config.js";
import { readHeadDim, readDimensions } from "./model-dimensions.js";

/**
 * Gemma 3's text models (Gemma3TextConfig): norms before and after attention and feed-forward with
 * 1 + weight, scaled embeddings, query and key norms, five sliding layers per full one with
 * separate rotary bases. `attn_logit_softcapping` is ignored, as in Transformers' Gemma 3.
 */
export const gemma3: Architecture = (config) => {
  if (config.flag("use_bidirectional_attention", false)) {
    throw config.unsupportedFieldError("use_bidirectional_attention", "Only causal attention is supported.");
  }
  const sizes = readDimensions(config, {
    vocabSize: 262_208,
    hiddenSize: 2304,
    intermediateSize: 9216,
    layerCount: 26,
    heads: 8,
    keyValueHeads: 4,
    maxPositions: 131_072,
  });
  const headDim = readHeadDim(config, sizes, 256);
  const attentionBias = config.flag("attention_bias", false);
  const slidingPattern = config.size("sliding_window_pattern", 6);
  const types = readLayerTypes(config, sizes.layerCount, (layer) =>
    (layer + 1) % slidingPattern === 0 ? "full_attention" : "sliding_attention",
  );
  const windows = getLayerWindows(config, types, config.optionalSize("sliding_window", 4096));
  const [full, sliding] = readRopes(config, { headDim, maxPositions: sizes.maxPositions });
  const network: DecoderConfig = llamaNetwork(config, {
    modelType: "gemma3_text",
    sizes,
    headDim,
    rope: full,
    biases: { queryKeyValue: attentionBias, attentionOutput: attentionBias, feedForward: false },
    tieWordEmbeddings: true,
    paddingToken: 0,
    layer: (layer) => ({
      names: layerNames(layer),
      rope: types[layer] === "full_attention" ? 0 : 1,
      window: windows[layer],
    }),
  });
  return {
    ...network,
    ropes: [full, sliding],
    norm: { ...network.norm, offset: 1 },
    activation: readActivation(config, "hidden_activation", "geluTanh"),
    attentionScale: config.positive("query_pre_attn_scalar", 256) ** -0.5,
    logitSoftcap: config.optionalPositive("final_logit_softcapping"),
    embeddingScale: Math.fround(sizes.hiddenSize ** 0.5),
  };
};

function layerNames(layer: number): LayerNames {
  const prefix = `model.layers.${layer}`;
  return {
    ...llamaLayerNames(layer),
    ...headNormNames(layer),
    postAttentionNorm: `${prefix}.post_attention_layernorm`,
    feedForwardNorm: `${prefix}.pre_feedforward_layernorm`,
    postFeedForwardNorm: `${prefix}.post_feedforward_layernorm`,
  };
}

/**
 * Reads the ropes of full and sliding layers. The older fields scale full layers only, and only by
 * `rope_type`: as in Transformers, `type` beside the default kind is ignored.
 */
function readRopes(config: HuggingFaceConfig, context: RopeContext): [full: RopeConfig, sliding: RopeConfig] {
  const parameters = config.object("rope_parameters");
  const fullFields = parameters?.object("full_attention")?.json ?? { rope_type: "default" };
  const full = { ...fullFields, ...config.object("rope_scaling")?.json };
  const owner = parameters === undefined ? "rope_scaling" : "rope_parameters.full_attention";
  return [
    readRopeObject(
      config,
      new HuggingFaceConfig(full, config.path, owner),
      config.positive("rope_theta", 1_000_000),
      context,
    ),
    readRopeObject(
      config,
      parameters?.object("sliding_attention"),
      config.positive("rope_local_base_freq", 10_000),
      context,
    ),
  ];
}
