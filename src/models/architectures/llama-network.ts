import type {
  DecoderConfig,
  LayerConfig,
  LayerNames,
  LinearBiases,
  RopeConfig,
} from "../../engine/nn/decoder-config.js";
import { readActivation } from "./read-activation.js";
import type { HuggingFaceConfig } from "./hugging-face-config.js";
import { readPaddingToken, type ModelDimensions } from "./model-dimensions.js";

export const NO_BIASES: LinearBiases = { queryKeyValue: false, attentionOutput: false, feedForward: false };

/** The names of Llama's layer `layer`, which most later architectures kept. */
export function llamaLayerNames(layer: number): LayerNames {
  const prefix = `model.layers.${layer}`;
  return {
    attentionNorm: `${prefix}.input_layernorm`,
    feedForwardNorm: `${prefix}.post_attention_layernorm`,
    query: `${prefix}.self_attn.q_proj`,
    key: `${prefix}.self_attn.k_proj`,
    value: `${prefix}.self_attn.v_proj`,
    attentionOutput: `${prefix}.self_attn.o_proj`,
    gate: `${prefix}.mlp.gate_proj`,
    up: `${prefix}.mlp.up_proj`,
    down: `${prefix}.mlp.down_proj`,
  };
}

/** `llamaLayerNames` with the norms of each query's and key's head, as Qwen 3 and Gemma 3 name them. */
export function headNormNames(layer: number): Pick<LayerNames, "queryNorm" | "keyNorm"> {
  const prefix = `model.layers.${layer}.self_attn`;
  return { queryNorm: `${prefix}.q_norm`, keyNorm: `${prefix}.k_norm` };
}

/** What tells one Llama-like network from another. */
export interface LlamaOptions {
  readonly modelType: string;
  readonly sizes: ModelDimensions;
  readonly headDim: number;
  readonly rope: RopeConfig;
  readonly biases: LinearBiases;
  /** tie_word_embeddings where config.json does not say. */
  readonly tieWordEmbeddings: boolean;
  /** rms_norm_eps where config.json does not say. */
  readonly epsilon?: number;
  /** pad_token_id where config.json does not say; none by default. */
  readonly paddingToken?: number;
  /** What differs from Llama's layer. */
  readonly layer?: (layer: number) => Partial<LayerConfig>;
}

/**
 * Llama's network (Touvron et al. 2023): RMSNorm before attention and before a gated feed-forward part, rotary positions,
 * grouped keys and values.
 */
export function llamaNetwork(config: HuggingFaceConfig, options: LlamaOptions): DecoderConfig {
  const { modelType, sizes, headDim, rope, biases } = options;
  const { layerCount, ...dimensions } = sizes;
  return {
    modelType,
    ...dimensions,
    headDim,
    layers: Array.from({ length: layerCount }, (_, layer) => ({
      names: llamaLayerNames(layer),
      rope: 0,
      window: undefined,
      ...options.layer?.(layer),
    })),
    ropes: [rope],
    norm: { kind: "rms", epsilon: config.positive("rms_norm_eps", options.epsilon ?? 1e-6), offset: 0 },
    activation: readActivation(config, "hidden_act", "silu"),
    parallelResidual: false,
    attentionScale: headDim ** -0.5,
    attentionSoftcap: undefined,
    logitSoftcap: undefined,
    embeddingScale: 1,
    paddingToken: readPaddingToken(config, sizes.vocabSize, options.paddingToken),
    biases,
    names: {
      embedding: "model.embed_tokens.weight",
      finalNorm: "model.norm",
      head: getHeadName(config, options.tieWordEmbeddings, "model.embed_tokens.weight"),
    },
    transposedWeights: false,
  };
}

/** The output matrix: that of the embedding where tie_word_embeddings says so. */
export function getHeadName(config: HuggingFaceConfig, tieByDefault: boolean, embedding: string): string {
  return config.flag("tie_word_embeddings", tieByDefault) ? embedding : "lm_head.weight";
}
