import type { LayerNames } from "../../engine/nn/index.js";
import { JsonFields } from "../../core/files/json-fields.js";
import { defineArchitecture } from "./architecture.js";
import { getHeadName, PLAIN_NETWORK, readActivation } from "./llama-network.js";
import { readDimensions } from "./model-dimensions.js";
import { readRope } from "./rope-config.js";

const EMBEDDING = "gpt_neox.embed_in.weight";

/**
 * GPT-NeoX and Pythia (GPTNeoXConfig): LayerNorm, biases, partial rotary dimensions, attention and
 * feed-forward in parallel on two norms, one module for the query, key and value of each head.
 */
export const gptNeox = defineArchitecture({
  modelTypes: ["gpt_neox"],
  decoder: (config) => {
    const own = withoutForeignFields(config);
    const { layerCount, ...sizes } = readDimensions(own, {
      vocabSize: 50_432,
      hiddenSize: 6144,
      intermediateSize: 24_576,
      layerCount: 44,
      heads: 64,
      maxPositions: 2048,
    });
    const { headDim } = sizes;
    if (headDim * sizes.heads !== sizes.hiddenSize)
      throw config.invalidFieldError("num_attention_heads", `a divisor of hidden_size (${sizes.hiddenSize})`);
    const hasBias = config.flag("attention_bias", true);
    return {
      ...PLAIN_NETWORK,
      modelType: "gpt_neox",
      ...sizes,
      layers: Array.from({ length: layerCount }, (_, layer) => ({
        names: layerNames(layer),
        rope: 0,
        window: undefined,
      })),
      ropes: [
        readRope(own, {
          headDim,
          maxPositions: sizes.maxPositions,
          defaultTheta: config.positive("rotary_emb_base", 10_000),
          defaultPartialRotaryFactor: config.positive("rotary_pct", 0.25),
        }),
      ],
      norm: { kind: "layer", epsilon: config.positive("layer_norm_eps", 1e-5), offset: 0 },
      activation: readActivation(config, "hidden_act", "gelu"),
      queryKeyValueOrder: "heads",
      parallelResidual: config.flag("use_parallel_residual", true),
      attentionScale: headDim ** -0.5,
      biases: { queryKeyValue: hasBias, attentionOutput: hasBias, feedForward: true },
      names: {
        embedding: EMBEDDING,
        finalNorm: "gpt_neox.final_layer_norm",
        head: getHeadName(config, false, EMBEDDING),
        storedHead: "embed_out.weight",
      },
    };
  },
});

/** Other architectures' fields, which GPTNeoXConfig does not have. */
const FOREIGN_FIELDS = new Set(["num_key_value_heads", "head_dim", "rope_theta", "partial_rotary_factor"]);

function withoutForeignFields({ json, path }: JsonFields): JsonFields {
  return new JsonFields(Object.fromEntries(Object.entries(json).filter(([name]) => !FOREIGN_FIELDS.has(name))), path);
}

function layerNames(layer: number): LayerNames {
  const prefix = `gpt_neox.layers.${layer}`;
  return {
    attentionNorm: `${prefix}.input_layernorm`,
    feedForwardNorm: `${prefix}.post_attention_layernorm`,
    queryKeyValue: `${prefix}.attention.query_key_value`,
    attentionOutput: `${prefix}.attention.dense`,
    up: `${prefix}.mlp.dense_h_to_4h`,
    down: `${prefix}.mlp.dense_4h_to_h`,
  };
}
