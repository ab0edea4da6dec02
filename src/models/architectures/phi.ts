import type { LayerNames } from "../../engine/nn/decoder-config.js";
import { readActivation } from "./read-activation.js";
import type { Architecture } from "./architecture.js";
import { getHeadName } from "./llama-network.js";
import { readRope } from "./rope-config.js";
import { readHeadDim, readPaddingToken, readDimensions } from "./model-dimensions.js";

const EMBEDDING = "model.embed_tokens.weight";

/**
 * Phi 1, 1.5 and 2 (PhiConfig): attention and a plain feed-forward block in parallel on one
 * LayerNorm, biases everywhere, partial rotary dimensions.
 */
export const phi: Architecture = (config) => {
  const { layerCount, ...sizes } = readDimensions(config, {
    vocabSize: 51_200,
    hiddenSize: 2048,
    intermediateSize: 8192,
    layerCount: 24,
    heads: 32,
    maxPositions: 2048,
  });
  const headDim = readHeadDim(config, { ...sizes, layerCount });
  const headNorms = config.flag("qk_layernorm", false);
  return {
    modelType: "phi",
    ...sizes,
    headDim,
    layers: Array.from({ length: layerCount }, (_, layer) => ({
      names: layerNames(layer, headNorms),
      rope: 0,
      window: undefined,
    })),
    ropes: [readRope(config, { headDim, maxPositions: sizes.maxPositions, defaultPartialRotaryFactor: 0.5 })],
    norm: { kind: "layer", epsilon: config.positive("layer_norm_eps", 1e-5), offset: 0 },
    activation: readActivation(config, "hidden_act", "geluTanh"),
    parallelResidual: true,
    attentionScale: headDim ** -0.5,
    attentionSoftcap: undefined,
    logitSoftcap: undefined,
    embeddingScale: 1,
    paddingToken: readPaddingToken(config, sizes.vocabSize),
    biases: { queryKeyValue: true, attentionOutput: true, feedForward: true },
    names: {
      embedding: EMBEDDING,
      finalNorm: "model.final_layernorm",
      head: getHeadName(config, false, EMBEDDING),
      headBias: "lm_head.bias",
    },
    transposedWeights: false,
  };
};

function layerNames(layer: number, headNorms: boolean): LayerNames {
  const prefix = `model.layers.${layer}`;
  const attention = `${prefix}.self_attn`;
  return {
    attentionNorm: `${prefix}.input_layernorm`,
    ...(headNorms && { queryNorm: `${attention}.q_layernorm`, keyNorm: `${attention}.k_layernorm` }),
    query: `${attention}.q_proj`,
    key: `${attention}.k_proj`,
    value: `${attention}.v_proj`,
    attentionOutput: `${attention}.dense`,
    up: `${prefix}.mlp.fc1`,
    down: `${prefix}.mlp.fc2`,
  };
}
