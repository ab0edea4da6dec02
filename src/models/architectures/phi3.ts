import type { LayerNames } from "../../engine/nn/decoder-config.js";
import type { Architecture } from "./architecture.js";
import { llamaNetwork, NO_BIASES } from "./llama-network.js";
import { readRope } from "./rope-config.js";
import { readHeadDim, readDimensions } from "./model-dimensions.js";

/**
 * Phi 3, 3.5 and 4 (Phi3Config): Llama with fused query/key/value and gate/up projections,
 * LongRoPE, and partial rotary dimensions in Phi-4-mini.
 */
export const phi3: Architecture = (config) => {
  const sizes = readDimensions(config, {
    vocabSize: 32_064,
    hiddenSize: 3072,
    intermediateSize: 8192,
    layerCount: 32,
    heads: 32,
    maxPositions: 4096,
  });
  const headDim = readHeadDim(config, sizes);
  const window = config.optionalSize("sliding_window");
  return llamaNetwork(config, {
    modelType: "phi3",
    sizes,
    headDim,
    rope: readRope(config, {
      headDim,
      maxPositions: sizes.maxPositions,
      defaultPartialRotaryFactor: 1,
      defaultOriginalLength: 4096,
      aliases: { su: "longrope", yarn: "longrope" },
    }),
    biases: NO_BIASES,
    tieWordEmbeddings: false,
    paddingToken: 32_000,
    epsilon: 1e-5,
    layer: (layer) => ({ window, names: layerNames(layer) }),
  });
};

function layerNames(layer: number): LayerNames {
  const prefix = `model.layers.${layer}`;
  return {
    attentionNorm: `${prefix}.input_layernorm`,
    feedForwardNorm: `${prefix}.post_attention_layernorm`,
    queryKeyValue: `${prefix}.self_attn.qkv_proj`,
    attentionOutput: `${prefix}.self_attn.o_proj`,
    gateUp: `${prefix}.mlp.gate_up_proj`,
    down: `${prefix}.mlp.down_proj`,
  };
}
