import type { DecoderConfig, RopeConfig } from "../../engine/nn/index.js";
import { type JsonObject, isJsonObject } from "../../core/json.js";
import { inferLongRopeAttentionFactor } from "./rope-config.js";

/**
 * Returns the rotary fields of Transformers 4 for a config.json with those of Transformers 5
 * (`rope_parameters`), which version 4 ignores; version 5 reads both. Empty for a config without
 * `rope_parameters`.
 */
export function buildLegacyRope(json: JsonObject, config: DecoderConfig): JsonObject {
  const { rope_parameters: parameters } = json;
  if (!isJsonObject(parameters) || config.ropes.length === 0) return {};
  // Gemma 3 has one for its full and one for its sliding layers, and version 4 scales only the
  // first.
  const [rope, slidingRope] = config.ropes;
  const { headDim } = config;
  const [theta, share] =
    config.modelType === "gpt_neox" ? ["rotary_emb_base", "rotary_pct"] : ["rope_theta", "partial_rotary_factor"];
  return {
    [theta]: rope.theta,
    ...(slidingRope !== undefined && { rope_local_base_freq: slidingRope.theta }),
    ...((rope.rotaryDim !== headDim || "partial_rotary_factor" in parameters) && {
      [share]: parameters.partial_rotary_factor ?? rope.rotaryDim / headDim,
    }),
    ...buildScaling(rope, config),
  };
}

function buildScaling({ scaling }: RopeConfig, { modelType, maxPositions }: DecoderConfig): JsonObject {
  switch (scaling.kind) {
    case "default":
      return { rope_scaling: null };
    case "linear":
    case "dynamic":
      return { rope_scaling: { rope_type: scaling.kind, factor: scaling.factor } };
    case "llama3":
      return {
        rope_scaling: {
          rope_type: "llama3",
          factor: scaling.factor,
          low_freq_factor: scaling.lowFrequencyFactor,
          high_freq_factor: scaling.highFrequencyFactor,
          original_max_position_embeddings: scaling.originalLength,
        },
      };
    case "yarn":
      return {
        rope_scaling: {
          rope_type: "yarn",
          factor: scaling.factor,
          beta_fast: scaling.betaFast,
          beta_slow: scaling.betaSlow,
          attention_factor: scaling.attentionFactor,
          truncate: scaling.truncate,
          original_max_position_embeddings: scaling.originalLength,
        },
      };
    case "longrope": {
      const { originalLength, attentionFactor } = scaling;
      const factors = { short_factor: [...scaling.shortFactor], long_factor: [...scaling.longFactor] };
      const factor = maxPositions / originalLength;
      const isInferred = Math.abs(attentionFactor - inferLongRopeAttentionFactor(factor, originalLength)) <= 1e-6;
      return {
        // Phi 3's class in version 4 accepts exactly these three fields; it rejects another
        // attention factor instead of ignoring it.
        rope_scaling:
          modelType === "phi3" && isInferred
            ? { type: "longrope", ...factors }
            : { rope_type: "longrope", ...factors, factor, attention_factor: attentionFactor },
        original_max_position_embeddings: originalLength,
      };
    }
  }
}
