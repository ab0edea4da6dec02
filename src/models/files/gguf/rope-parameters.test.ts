import { describe, expect, it } from "vitest";
import type { GgufValue } from "./header-cursor.js";
import { GgufFields } from "./gguf-fields.js";
import { buildRopeParameters } from "./rope-parameters.js";

function createFields(values: Readonly<Record<string, GgufValue>>): GgufFields {
  const named = Object.entries(values).map(([key, value]) => [`llama.${key}`, value] as const);
  return new GgufFields("model.gguf", new Map<string, GgufValue>([["general.architecture", "llama"], ...named]));
}

/** Llama 3's factors, by Transformers' `_compute_llama3_parameters`. */
function llama3Factors(
  theta: number,
  size: number,
  factor: number,
  low: number,
  high: number,
  original: number,
): Float32Array {
  return Float32Array.from({ length: size / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * theta ** ((2 * i) / size);
    if (wavelength < original / high) return 1;
    if (wavelength > original / low) return factor;
    const smooth = (original / wavelength - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}

const source = { dimensions: 64, maxPositions: 131_072 };

describe("rotary positions of a GGUF file", () => {
  it("are recovered from Llama 3's published parameters", () => {
    for (const factor of [8, 32]) {
      const frequencyFactors = llama3Factors(500_000, 64, factor, 1, 4, 8192);
      const fields = createFields({ "rope.freq_base": 500_000 });
      expect(buildRopeParameters({ ...source, fields, frequencyFactors })).toEqual({
        rope_type: "llama3",
        rope_theta: 500_000,
        factor,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 8192,
      });
    }
  });

  it("are recovered from other parameters of Llama 3's formula", () => {
    const frequencyFactors = llama3Factors(10_000, 128, 4, 1, 8, 2048);
    const fields = createFields({ "rope.freq_base": 10_000 });
    expect(buildRopeParameters({ fields, dimensions: 128, maxPositions: 8192, frequencyFactors })).toEqual({
      rope_type: "llama3",
      rope_theta: 10_000,
      factor: 4,
      low_freq_factor: 1,
      high_freq_factor: 8,
      original_max_position_embeddings: 2048,
    });
  });

  it("keep factors that follow no formula", () => {
    const frequencyFactors = Float32Array.of(1, 1.5, 1.25, 3);
    const fields = createFields({});
    expect(buildRopeParameters({ fields, dimensions: 8, maxPositions: 512, frequencyFactors })).toMatchObject({
      rope_type: "longrope",
      long_factor: [1, 1.5, 1.25, 3],
      short_factor: [1, 1.5, 1.25, 3],
      attention_factor: 1,
    });
    const ones = new Float32Array(4).fill(1);
    expect(buildRopeParameters({ fields, dimensions: 8, maxPositions: 512, frequencyFactors: ones })).toEqual({
      rope_type: "default",
      rope_theta: 10_000,
    });
  });

  it("are scaled as stored", () => {
    const linear = createFields({ "rope.scaling.type": "linear", "rope.scaling.factor": 4 });
    expect(buildRopeParameters({ ...source, fields: linear })).toEqual({
      rope_type: "linear",
      rope_theta: 10_000,
      factor: 4,
    });
    const old = createFields({ "rope.scale_linear": 2 });
    expect(buildRopeParameters({ ...source, fields: old })).toMatchObject({ rope_type: "linear", factor: 2 });
    const none = createFields({ "rope.scaling.type": "none", "rope.scaling.factor": 4 });
    expect(buildRopeParameters({ ...source, fields: none })).toMatchObject({ rope_type: "default" });
    const yarn = createFields({
      "rope.scaling.type": "yarn",
      "rope.scaling.factor": 4,
      "rope.scaling.original_context_length": 32_768,
      "rope.scaling.yarn_attn_factor": 1.25,
      "rope.scaling.yarn_beta_slow": 2,
    });
    expect(buildRopeParameters({ ...source, fields: yarn })).toEqual({
      rope_type: "yarn",
      rope_theta: 10_000,
      factor: 4,
      original_max_position_embeddings: 32_768,
      attention_factor: 1.25,
      beta_slow: 2,
    });
  });
});

describe("GgufFields", () => {
  it("returns float32 values as short decimals and rejects wrong types", () => {
    const fields = createFields({ eps: Math.fround(1e-5), same: [3, 3], different: [1, 2], text: "x", zero: 0 });
    expect(fields.number("eps")).toBe(1e-5);
    expect(fields.number("same")).toBe(3);
    expect(() => fields.number("different")).toThrowError(/a different "llama\.different" per layer/u);
    expect(() => fields.number("text")).toThrowError(/is "x", not a number/u);
    expect(() => fields.number("missing")).toThrowError(/lacks "llama\.missing"/u);
    expect(() => fields.size("zero")).toThrowError(/is 0, not a size/u);
    expect(() => fields.boolean("general.architecture")).toThrowError(/not a boolean/u);
  });
});
