import type { JsonObject, JsonValue } from "../../../core/json.js";
import { toShortestDecimal, type GgufFields } from "./gguf-fields.js";

/** Inputs of a GGUF file's rotary parameters. */
export interface RopeSource {
  readonly fields: GgufFields;
  /** Rotated dimensions of a head. */
  readonly dimensions: number;
  readonly maxPositions: number;
  /**
   * Contents of rope_freqs.weight, rope_factors_long.weight and rope_factors_short.weight, if
   * present.
   */
  readonly frequencyFactors?: Float32Array;
  readonly longFactors?: Float32Array;
  readonly shortFactors?: Float32Array;
}

/**
 * Builds Transformers' `rope_parameters` for a GGUF file; `defaultTheta` applies where the base is
 * not stored.
 */
export function buildRopeParameters(source: RopeSource, defaultTheta = 10_000): JsonObject {
  const { fields } = source;
  const theta = fields.optionalNumber("rope.freq_base") ?? defaultTheta;
  if (source.longFactors !== undefined && source.shortFactors !== undefined)
    return buildLongRopeParameters(source, theta, source.longFactors, source.shortFactors);
  if (source.frequencyFactors !== undefined) return buildScaledParameters(source, theta, source.frequencyFactors);
  const factor = fields.optionalNumber("rope.scaling.factor") ?? fields.optionalNumber("rope.scale_linear");
  const type = fields.string(`${fields.architecture}.rope.scaling.type`);
  if (factor === undefined || factor === 0 || type === "none") return { rope_type: "default", rope_theta: theta };
  if (type === "yarn") return buildYarnParameters(source, theta, factor);
  return factor === 1
    ? { rope_type: "default", rope_theta: theta }
    : { rope_type: "linear", rope_theta: theta, factor };
}

function buildYarnParameters({ fields, maxPositions }: RopeSource, theta: number, factor: number): JsonObject {
  const parameters: Record<string, JsonValue> = {
    rope_type: "yarn",
    rope_theta: theta,
    factor,
    original_max_position_embeddings:
      fields.optionalNumber("rope.scaling.original_context_length") ?? Math.round(maxPositions / factor),
  };
  const extras: readonly [string, string][] = [
    ["attention_factor", "rope.scaling.yarn_attn_factor"],
    ["beta_fast", "rope.scaling.yarn_beta_fast"],
    ["beta_slow", "rope.scaling.yarn_beta_slow"],
  ];
  for (const [key, name] of extras) {
    const value = fields.optionalNumber(name);
    if (value !== undefined) parameters[key] = value;
  }
  return parameters;
}

function buildLongRopeParameters(
  { fields, maxPositions }: RopeSource,
  theta: number,
  long: Float32Array,
  short: Float32Array,
): JsonObject {
  const original = fields.optionalNumber("rope.scaling.original_context_length") ?? maxPositions;
  const attention = fields.optionalNumber("rope.scaling.attn_factor");
  return {
    rope_type: "longrope",
    rope_theta: theta,
    long_factor: Array.from(long, toShortestDecimal),
    short_factor: Array.from(short, toShortestDecimal),
    factor: maxPositions / original,
    original_max_position_embeddings: original,
    ...(attention === undefined ? {} : { attention_factor: attention }),
  };
}

/**
 * GGUF stores Llama 3's scaling only as a factor per frequency, from which its parameters are
 * recovered. Factors that do not follow Llama 3's formula become a longrope with equal short and
 * long factors, which computes the same positions.
 */
function buildScaledParameters(source: RopeSource, theta: number, factors: Float32Array): JsonObject {
  if (factors.every((factor) => factor === 1)) return { rope_type: "default", rope_theta: theta };
  const llama3 = recoverLlama3Scaling(theta, source.dimensions, factors);
  if (llama3 !== undefined) return { rope_type: "llama3", rope_theta: theta, ...llama3 };
  const list = Array.from(factors, toShortestDecimal);
  return {
    rope_type: "longrope",
    rope_theta: theta,
    long_factor: list,
    short_factor: list,
    factor: 1,
    original_max_position_embeddings: source.maxPositions,
    attention_factor: 1,
  };
}

interface Llama3Scaling extends JsonObject {
  factor: number;
  low_freq_factor: number;
  high_freq_factor: number;
  original_max_position_embeddings: number;
}

/**
 * Computes the factor that Llama 3's formula divides a frequency by (Transformers'
 * `_compute_llama3_parameters`).
 */
function computeLlama3Factor(wavelength: number, scaling: Llama3Scaling): number {
  const rotations = scaling.original_max_position_embeddings / wavelength;
  if (rotations > scaling.high_freq_factor) return 1;
  if (rotations < scaling.low_freq_factor) return scaling.factor;
  const smooth = (rotations - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return 1 / ((1 - smooth) / scaling.factor + smooth);
}

function recoverLlama3Scaling(theta: number, dimensions: number, factors: Float32Array): Llama3Scaling | undefined {
  const wavelengths = Array.from(factors, (_, i) => 2 * Math.PI * theta ** ((2 * i) / dimensions));
  const factor = toShortestDecimal(factors.reduce((largest, value) => Math.max(largest, value), 1));
  const candidates = [publishedLlama3Scaling(factor), fitLlama3Scaling(wavelengths, factors, factor)];
  return candidates.find(
    (scaling) =>
      scaling !== undefined &&
      factors.every((value, i) => Math.abs(computeLlama3Factor(wavelengths[i], scaling) - value) <= 1e-4 * value),
  );
}

/** Returns the parameters of Llama 3.1 to 3.3, apart from the factor. */
function publishedLlama3Scaling(factor: number): Llama3Scaling {
  return { factor, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 };
}

/**
 * Fits the parameters: smoothing is linear in 1 / wavelength between the limits, so two
 * interpolated factors determine them up to a common scale; low_freq_factor is set to 1.
 */
function fitLlama3Scaling(
  wavelengths: readonly number[],
  factors: Float32Array,
  factor: number,
): Llama3Scaling | undefined {
  const points = wavelengths.flatMap((wavelength, i) => {
    const isInterpolated = factors[i] > 1 && factors[i] < Math.fround(factor);
    return isInterpolated ? [{ x: 1 / wavelength, smooth: (1 / factors[i] - 1 / factor) / (1 - 1 / factor) }] : [];
  });
  const first = points.at(0);
  const last = points.at(-1);
  if (first === undefined || last === undefined || points.length < 2) return undefined;
  const slope = (first.smooth - last.smooth) / (first.x - last.x);
  const offset = last.smooth - slope * last.x;
  const high = Number((1 - 1 / offset).toPrecision(4));
  return {
    factor,
    low_freq_factor: 1,
    high_freq_factor: high,
    original_max_position_embeddings: Math.round(slope * (high - 1)),
  };
}
