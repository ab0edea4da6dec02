import type { JsonObject } from "../../core/json.js";
import type { JsonFields } from "../../core/files/json-fields.js";
import type { DecoderConfig, LayerNames } from "../../engine/nn/index.js";
import {
  buildDecoderFields,
  buildRope,
  getRmsNormEpsilon,
  mapLayers,
  type GgufConfigSource,
  type GgufDimensions,
} from "../files/gguf/gguf-config.js";
import { defineArchitecture } from "./architecture.js";
import { getLayerWindows, readLayerTypes } from "./layer-types.js";
import { attentionTensors, decoderTensors, mlpTensors } from "./llama-gguf.js";
import { llamaLayerNames, llamaNetwork, readAttentionBiases, readActivation } from "./llama-network.js";

const LAYERS_27B = 46;
const isSliding = (layer: number): boolean => layer % 2 === 0;

/** Names of the layers' tensors in GGUF files of Gemma 2 and 3, without head norms. */
export const gemmaLayerTensors = {
  ...attentionTensors,
  ...mlpTensors,
  post_attention_norm: "post_attention_layernorm",
  ffn_norm: "pre_feedforward_layernorm",
  post_ffw_norm: "post_feedforward_layernorm",
};

/**
 * Gemma 2 (Gemma2Config): norms before and after attention and feed-forward with 1 + weight, scaled
 * embeddings, a window in every other layer, capped attention scores and logits.
 */
export const gemma2 = defineArchitecture({
  modelTypes: ["gemma2"],
  decoder: (config) => {
    const readCap = (field: string, fallback: number): number | undefined =>
      config.has(field) ? config.optionalPositive(field) : fallback;
    const network = llamaNetwork(config, {
      modelType: "gemma2",
      defaults: {
        vocabSize: 256_000,
        hiddenSize: 2304,
        intermediateSize: 9216,
        layerCount: 26,
        heads: 8,
        keyValueHeads: 4,
        headDim: 256,
        maxPositions: 8192,
      },
      biases: readAttentionBiases(config),
      tieWordEmbeddings: true,
      paddingToken: 0,
      layers: (count) => {
        const types = readLayerTypes(config, count, (layer) =>
          isSliding(layer) ? "sliding_attention" : "full_attention",
        );
        const windows = getLayerWindows(config, types, config.optionalSize("sliding_window", 4096));
        return (layer) => ({ names: gemmaLayerNames(layer), window: windows[layer] });
      },
    });
    return {
      ...toGemmaNetwork(config, network),
      attentionSoftcap: readCap("attn_logit_softcapping", 50),
      logitSoftcap: readCap("final_logit_softcapping", 30),
    };
  },
  gguf: {
    name: "gemma2",
    modelClass: "Gemma2ForCausalLM",
    ...decoderTensors,
    layerTensors: gemmaLayerTensors,
    hasNormOffset: true,
    config: (source, sizes) => ({
      ...buildGemmaFields("gemma2", source, sizes, LAYERS_27B),
      attn_logit_softcapping: source.fields.optionalNumber("attn_logit_softcapping") ?? 50,
      final_logit_softcapping: source.fields.optionalNumber("final_logit_softcapping") ?? 30,
      sliding_window: source.fields.optionalNumber("attention.sliding_window") ?? 4096,
      layer_types: mapLayers(sizes, (layer) => (isSliding(layer) ? "sliding_attention" : "full_attention")),
      rope_parameters: buildRope(source, sizes),
    }),
  },
});

/** Returns the names of the layers of Gemma 2 and 3, without head norms. */
export function gemmaLayerNames(layer: number): LayerNames {
  const prefix = `model.layers.${layer}`;
  return {
    ...llamaLayerNames(layer),
    postAttentionNorm: `${prefix}.post_attention_layernorm`,
    feedForwardNorm: `${prefix}.pre_feedforward_layernorm`,
    postFeedForwardNorm: `${prefix}.post_feedforward_layernorm`,
  };
}

/** Applies what Gemma 2 and 3 share to a Llama-like network. */
export function toGemmaNetwork(config: JsonFields, network: DecoderConfig): DecoderConfig {
  if (config.flag("use_bidirectional_attention", false))
    throw config.unsupportedFieldError("use_bidirectional_attention", "Only causal attention is supported.");
  return {
    ...network,
    norm: { ...network.norm, offset: 1 },
    activation: readActivation(config, "hidden_activation", "geluTanh"),
    attentionScale: config.positive("query_pre_attn_scalar", 256) ** -0.5,
    embeddingScale: Math.fround(network.hiddenSize ** 0.5),
  };
}

/** Builds the fields of `config.json` that Gemma 2 and 3 share. */
export function buildGemmaFields(
  modelType: string,
  source: GgufConfigSource,
  sizes: GgufDimensions,
  layersOf27B: number,
): JsonObject {
  return {
    ...buildDecoderFields(modelType, source, sizes),
    head_dim: sizes.headSize,
    hidden_activation: "gelu_pytorch_tanh",
    rms_norm_eps: getRmsNormEpsilon(source),
    attention_bias: false,
    // Not stored: only the 27B model scales by hidden / heads instead of the head size.
    query_pre_attn_scalar: sizes.layers === layersOf27B ? sizes.hidden / sizes.heads : sizes.headSize,
  };
}
