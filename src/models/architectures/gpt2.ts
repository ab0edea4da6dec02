import { getFeedForwardSize } from "../files/gguf/gguf-config.js";
import type { LayerNames } from "../../engine/nn/index.js";
import { defineArchitecture } from "./architecture.js";
import { getHeadName, PLAIN_NETWORK, readActivation } from "./llama-network.js";
import { readLayerCount } from "./model-dimensions.js";

const EMBEDDING = "transformer.wte.weight";

/**
 * GPT-2 and DistilGPT2 (GPT2Config): learned positions, LayerNorm, biases, one module for query,
 * key and value.
 */
export const gpt2 = defineArchitecture({
  modelTypes: ["gpt2"],
  decoder: (config) => {
    if (config.flag("add_cross_attention", false))
      throw config.unsupportedFieldError("add_cross_attention", "Only decoder-only models are supported.");
    const hiddenSize = config.size("n_embd", 768);
    const heads = config.size("n_head", 12);
    const headDim = hiddenSize / heads;
    if (!Number.isInteger(headDim)) throw config.invalidFieldError("n_head", `a divisor of n_embd (${hiddenSize})`);
    const attentionScale = config.flag("scale_attn_weights", true) ? headDim ** -0.5 : 1;
    const scalesByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
    const layerCount = readLayerCount(config, "n_layer", 12);
    return {
      ...PLAIN_NETWORK,
      modelType: "gpt2",
      vocabSize: config.size("vocab_size", 50_257),
      hiddenSize,
      intermediateSize: config.optionalSize("n_inner") ?? 4 * hiddenSize,
      heads,
      keyValueHeads: heads,
      headDim,
      maxPositions: config.size("n_positions", 1024),
      layers: Array.from({ length: layerCount }, (_, layer) => ({
        names: layerNames(layer),
        rope: undefined,
        window: undefined,
        ...(scalesByLayer && { attentionScale: attentionScale / (layer + 1) }),
      })),
      ropes: [],
      norm: { kind: "layer", epsilon: config.positive("layer_norm_epsilon", 1e-5), offset: 0 },
      activation: readActivation(config, "activation_function", "geluTanh"),
      attentionScale,
      biases: { queryKeyValue: true, attentionOutput: true, feedForward: true },
      names: {
        embedding: EMBEDDING,
        positions: "transformer.wpe.weight",
        finalNorm: "transformer.ln_f",
        head: getHeadName(config, true, EMBEDDING),
      },
      transposedWeights: true,
    };
  },
  gguf: {
    name: "gpt2",
    modelClass: "GPT2LMHeadModel",
    globalTensors: {
      token_embd: "transformer.wte",
      position_embd: "transformer.wpe",
      output_norm: "transformer.ln_f",
      output: "lm_head",
    },
    layerPrefix: "transformer.h.",
    layerTensors: {
      attn_norm: "ln_1",
      attn_qkv: "attn.c_attn",
      attn_output: "attn.c_proj",
      ffn_norm: "ln_2",
      ffn_up: "mlp.c_fc",
      ffn_down: "mlp.c_proj",
    },
    transposed: ["attn_qkv", "attn_output", "ffn_up", "ffn_down"],
    config: (source, sizes) => ({
      model_type: "gpt2",
      n_embd: sizes.hidden,
      n_layer: sizes.layers,
      n_head: sizes.heads,
      n_positions: source.fields.size("context_length"),
      n_inner: getFeedForwardSize(source),
      activation_function: "gelu_new",
      layer_norm_epsilon: source.fields.number("attention.layer_norm_epsilon"),
      scale_attn_weights: true,
      scale_attn_by_inverse_layer_idx: false,
      reorder_and_upcast_attn: false,
      attn_pdrop: 0,
      embd_pdrop: 0,
      resid_pdrop: 0,
    }),
  },
});

function layerNames(layer: number): LayerNames {
  const prefix = `transformer.h.${layer}`;
  return {
    attentionNorm: `${prefix}.ln_1`,
    feedForwardNorm: `${prefix}.ln_2`,
    queryKeyValue: `${prefix}.attn.c_attn`,
    attentionOutput: `${prefix}.attn.c_proj`,
    up: `${prefix}.mlp.c_fc`,
    down: `${prefix}.mlp.c_proj`,
  };
}
