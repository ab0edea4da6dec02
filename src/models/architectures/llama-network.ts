import type { DecoderConfig, LayerConfig, LayerNames, LinearBiases, RopeConfig } from "../../engine/nn/index.js";
import type { JsonFields } from "../../core/files/json-fields.js";
import { readDimensions, readPaddingToken, type DimensionDefaults } from "./model-dimensions.js";
import { readRope, type RopeContext } from "./rope-config.js";

/** What networks have where nothing else is said. */
export const PLAIN_NETWORK = {
  queryKeyValueOrder: "parts",
  queryKeyNorm: "head",
  parallelResidual: false,
  attentionSoftcap: undefined,
  logitScale: 1,
  logitSoftcap: undefined,
  embeddingScale: 1,
  residualScale: 1,
  paddingToken: undefined,
  transposedWeights: false,
} satisfies Partial<DecoderConfig>;

export const NO_BIASES: LinearBiases = { queryKeyValue: false, attentionOutput: false, feedForward: false };

/** Reads attention_bias, which applies to all four projections. */
export function readAttentionBiases(config: JsonFields): LinearBiases {
  const hasBias = config.flag("attention_bias", false);
  return { queryKeyValue: hasBias, attentionOutput: hasBias, feedForward: false };
}

/** Returns the names of Llama's layer `layer`, which most later architectures share. */
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

/** Returns the names of the query and key norms of Qwen 3 and Gemma 3. */
export function headNormNames(layer: number): Pick<LayerNames, "queryNorm" | "keyNorm"> {
  const prefix = `model.layers.${layer}.self_attn`;
  return { queryNorm: `${prefix}.q_norm`, keyNorm: `${prefix}.k_norm` };
}

/** Differences between Llama-like networks. */
export interface LlamaOptions {
  readonly modelType: string;
  readonly defaults: DimensionDefaults;
  /** Returns the rotary embeddings; by default one that all layers share. */
  readonly ropes?: (context: RopeContext) => readonly RopeConfig[];
  readonly biases: LinearBiases;
  /** Default of tie_word_embeddings. */
  readonly tieWordEmbeddings: boolean;
  /** Default of rms_norm_eps. */
  readonly epsilon?: number;
  /** Default of pad_token_id; none if undefined. */
  readonly paddingToken?: number;
  /** Returns the differences from Llama's layer for a number of layers. */
  readonly layers?: (layerCount: number) => (layer: number) => Partial<LayerConfig>;
}

/**
 * Builds a Llama-like network (Touvron et al. 2023): RMSNorm before attention and before a gated
 * feed-forward block, rotary positions, grouped-query attention.
 */
export function llamaNetwork(config: JsonFields, options: LlamaOptions): DecoderConfig {
  const { modelType, biases } = options;
  const { layerCount, ...dimensions } = readDimensions(config, options.defaults);
  const { headDim, maxPositions } = dimensions;
  const getRopes = options.ropes ?? ((context) => [readRope(config, context)]);
  const getLayer = options.layers?.(layerCount);
  return {
    ...PLAIN_NETWORK,
    modelType,
    ...dimensions,
    layers: Array.from({ length: layerCount }, (_, layer) => ({
      names: llamaLayerNames(layer),
      rope: 0,
      window: undefined,
      ...getLayer?.(layer),
    })),
    ropes: getRopes({ headDim, maxPositions }),
    norm: { kind: "rms", epsilon: config.positive("rms_norm_eps", options.epsilon ?? 1e-6), offset: 0 },
    activation: readActivation(config, "hidden_act", "silu"),
    attentionScale: headDim ** -0.5,
    paddingToken: readPaddingToken(config, dimensions.vocabSize, options.paddingToken),
    biases,
    names: {
      embedding: "model.embed_tokens.weight",
      finalNorm: "model.norm",
      head: getHeadName(config, options.tieWordEmbeddings, "model.embed_tokens.weight"),
    },
  };
}

/**
 * Returns the name of the output matrix, which is the embedding's where tie_word_embeddings is set.
 */
export function getHeadName(config: JsonFields, tieByDefault: boolean, embedding: string): string {
  return config.flag("tie_word_embeddings", tieByDefault) ? embedding : "lm_head.weight";
}

type Activation = DecoderConfig["activation"];

/** Names in Transformers' ACT2FN. */
const activations: Readonly<Record<string, Activation>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_python: "gelu",
  gelu_new: "geluTanh",
  gelu_fast: "geluTanh",
  gelu_accurate: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
  gelu_python_tanh: "geluTanh",
  relu: "relu",
};

/** Reads the feed-forward activation. @throws MODEL_UNSUPPORTED for an unsupported one. */
export function readActivation(config: JsonFields, field: string, fallback: Activation): Activation {
  const name = config.text(field);
  if (name === undefined) return fallback;
  const activation = Object.hasOwn(activations, name) ? activations[name] : undefined;
  if (activation !== undefined) return activation;
  throw config.unsupportedFieldError(field, `Supported: ${Object.keys(activations).join(", ")}.`);
}
