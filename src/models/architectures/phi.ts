import { buildDecoderFields, buildPartialRope } from "../files/gguf/gguf-config.js";
import { decoderTensors, attentionTensors } from "./llama-gguf.js";
import type { LayerNames } from "../../engine/nn/index.js";
import { defineArchitecture } from "./architecture.js";
import { getHeadName, PLAIN_NETWORK, readActivation } from "./llama-network.js";
import { readRope } from "./rope-config.js";
import { readPaddingToken, readDimensions } from "./model-dimensions.js";

const EMBEDDING = "model.embed_tokens.weight";

/**
 * Phi 1, 1.5 and 2 (PhiConfig): attention and a plain feed-forward block in parallel on one
 * LayerNorm, biases everywhere, partial rotary dimensions.
 */
export const phi = defineArchitecture({
  modelTypes: ["phi"],
  decoder: (config) => {
    const { layerCount, ...sizes } = readDimensions(config, {
      vocabSize: 51_200,
      hiddenSize: 2048,
      intermediateSize: 8192,
      layerCount: 24,
      heads: 32,
      maxPositions: 2048,
    });
    const { headDim } = sizes;
    const headNorms = config.flag("qk_layernorm", false);
    return {
      ...PLAIN_NETWORK,
      modelType: "phi",
      ...sizes,
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
      paddingToken: readPaddingToken(config, sizes.vocabSize),
      biases: { queryKeyValue: true, attentionOutput: true, feedForward: true },
      names: {
        embedding: EMBEDDING,
        finalNorm: "model.final_layernorm",
        head: getHeadName(config, false, EMBEDDING),
        headBias: "lm_head.bias",
      },
    };
  },
  gguf: {
    name: "phi2",
    modelClass: "PhiForCausalLM",
    ...decoderTensors,
    globalTensors: { ...decoderTensors.globalTensors, output_norm: "model.final_layernorm" },
    layerTensors: { ...attentionTensors, attn_output: "self_attn.dense", ffn_up: "mlp.fc1", ffn_down: "mlp.fc2" },
    config: (source, sizes) => ({
      ...buildDecoderFields("phi", source, sizes),
      hidden_act: "gelu_new",
      layer_norm_eps: source.fields.number("attention.layer_norm_epsilon"),
      qk_layernorm: false,
      embd_pdrop: 0,
      resid_pdrop: 0,
      rope_parameters: buildPartialRope(source, sizes),
    }),
  },
});

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
