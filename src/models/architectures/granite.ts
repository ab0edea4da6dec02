import type { GgufArchitecture } from "../files/gguf/gguf-config.js";
import { attentionTensors, createLlamaConfig, decoderTensors, llamaLayerTensors } from "./llama-gguf.js";
import { defineArchitecture } from "./architecture.js";
import type { JsonFields } from "../../core/files/json-fields.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { readLayerTypes } from "./layer-types.js";
import { LLAMA_DIMENSIONS } from "./llama.js";
import { llamaLayerNames, llamaNetwork, readAttentionBiases } from "./llama-network.js";

/** Applies Granite's four multipliers to a Llama-like network. */
function scaleNetwork(config: JsonFields, network: DecoderConfig): DecoderConfig {
  return {
    ...network,
    attentionScale: config.positive("attention_multiplier", 1),
    embeddingScale: config.positive("embedding_multiplier", 1),
    residualScale: config.positive("residual_multiplier", 1),
    logitScale: 1 / config.positive("logits_scaling", 1),
  };
}

const graniteGguf: GgufArchitecture = {
  name: "granite",
  modelClass: "GraniteForCausalLM",
  ...decoderTensors,
  layerTensors: llamaLayerTensors,
  interleavedRotary: true,
  config: (source, sizes) => ({
    ...createLlamaConfig("granite")(source, sizes),
    attention_multiplier: source.fields.optionalNumber("attention.scale") ?? sizes.headSize ** -0.5,
    embedding_multiplier: source.fields.optionalNumber("embedding_scale") ?? 1,
    residual_multiplier: source.fields.optionalNumber("residual_scale") ?? 1,
    logits_scaling: source.fields.optionalNumber("logit_scale") ?? 1,
  }),
};

/** Granite 3 (GraniteConfig): Llama with four multipliers. */
export const granite = defineArchitecture({
  modelTypes: ["granite"],
  decoder: (config) =>
    scaleNetwork(
      config,
      llamaNetwork(config, {
        modelType: "granite",
        defaults: LLAMA_DIMENSIONS,
        biases: { ...readAttentionBiases(config), feedForward: config.flag("mlp_bias", false) },
        tieWordEmbeddings: false,
      }),
    ),
  gguf: graniteGguf,
});

/**
 * Granite 4's dense models (GraniteMoeHybridConfig without experts and with attention in every
 * layer): Granite 3 with one module for gate and up.
 */
export const graniteMoeHybrid = defineArchitecture({
  modelTypes: ["granitemoehybrid"],
  decoder: (config) => {
    if (config.count("num_local_experts", 8) > 0)
      throw config.unsupportedFieldError("num_local_experts", "Only dense models (0) are supported.");
    const positions = config.text("position_embedding_type");
    if (positions !== undefined && positions !== "rope")
      throw config.unsupportedFieldError("position_embedding_type", 'Supported: "rope" and null.');
    const network = llamaNetwork(config, {
      modelType: "granitemoehybrid",
      defaults: LLAMA_DIMENSIONS,
      biases: readAttentionBiases(config),
      tieWordEmbeddings: false,
      layers: (count) => {
        const refuse = () =>
          config.unsupportedFieldError("layer_types", 'Only "attention" in every layer is supported.');
        const types = readLayerTypes(config, count, () => {
          throw refuse();
        });
        if (types.includes("sliding_attention")) throw refuse();
        return (layer) => ({ names: layerNames(layer), rope: positions === undefined ? undefined : 0 });
      },
    });
    return scaleNetwork(config, {
      ...network,
      intermediateSize: config.size("shared_intermediate_size", 1024),
      ropes: positions === undefined ? [] : network.ropes,
    });
  },
  exportGguf: {
    ...graniteGguf,
    layerTensors: {
      ...attentionTensors,
      ffn_norm: "post_attention_layernorm",
      ffn_gate_up: "shared_mlp.input_linear",
      ffn_down: "shared_mlp.output_linear",
    },
    halves: { ffn_gate_up: ["ffn_gate", "ffn_up"] },
  },
});

function layerNames(layer: number) {
  const { gate: _, up: __, ...names } = llamaLayerNames(layer);
  const prefix = `model.layers.${layer}.shared_mlp`;
  return { ...names, gateUp: `${prefix}.input_linear`, down: `${prefix}.output_linear` };
}
