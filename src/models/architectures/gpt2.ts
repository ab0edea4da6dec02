import type { LayerNames } from "../../engine/nn/decoder-config.js";
import { readActivation } from "./read-activation.js";
import type { Architecture } from "./architecture.js";
import { getHeadName } from "./llama-network.js";
import { readLayerCount } from "./model-dimensions.js";

const EMBEDDING = "transformer.wte.weight";

/** GPT-2 and DistilGPT2 (GPT2Config): learned positions, LayerNorm, biases, one module for query, key and value. */
export const gpt2: Architecture = (config) => {
  if (config.flag("add_cross_attention", false)) {
    throw config.unsupportedFieldError("add_cross_attention", "Only decoder-only models are supported.");
  }
  const hiddenSize = config.size("n_embd", 768);
  const heads = config.size("n_head", 12);
  const headDim = hiddenSize / heads;
  if (!Number.isInteger(headDim)) throw config.invalidFieldError("n_head", `a divisor of n_embd (${hiddenSize})`);
  const attentionScale = config.flag("scale_attn_weights", true) ? headDim ** -0.5 : 1;
  const scalesByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  const layerCount = readLayerCount(config, "n_layer", 12);
  return {
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
    parallelResidual: false,
    attentionScale,
    attentionSoftcap: undefined,
    logitSoftcap: undefined,
    embeddingScale: 1,
    paddingToken: undefined,
    biases: { queryKeyValue: true, attentionOutput: true, feedForward: true },
    names: {
      embedding: EMBEDDING,
      positions: "transformer.wpe.weight",
      finalNorm: "transformer.ln_f",
      head: getHeadName(config, true, EMBEDDING),
    },
    transposedWeights: true,
  };
};

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
