import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import type { JsonObject } from "../../core/json.js";
import { buildLegacyRope, linearModules, parameterShapes, parseModelConfig, supportedModelTypes } from "./index.js";

interface ArchitectureCase {
  name: string;
  /**
   * What Transformers 5.23 saves, and the same in the older dialect; null for an architecture
   * without rotary positions.
   */
  config: JsonObject;
  legacy: JsonObject | null;
  /** The saved tensors and their shapes. */
  tensors: Record<string, number[]>;
  /** The modules that PEFT 0.21 adapts for "all-linear", with their sizes in and out. */
  linear: Record<string, [number, number]>;
}

const fixture = new URL("../../../test/fixtures/models/architectures.json", import.meta.url);
const cases = JSON.parse(readFileSync(fixture, "utf8")) as ArchitectureCase[];
const parse = (config: JsonObject) => parseModelConfig(config, "model/config.json");
const llama = cases[0].config;

/** Fields without which a `model_type` alone is not supported. */
const neededFields = (modelType: string, layers = 32): JsonObject =>
  modelType === "granitemoehybrid"
    ? { num_local_experts: 0, layer_types: Array<string>(layers).fill("attention"), position_embedding_type: "rope" }
    : {};

function errorOf(config: JsonObject): LlamaGymError {
  try {
    parse(config);
  } catch (error) {
    if (error instanceof LlamaGymError) return error;
  }
  throw new Error("no LlamaGymError was thrown");
}

describe.each(cases)("$name", ({ config, legacy, tensors, linear }) => {
  it("has the names and shapes of Transformers' tensors", () => {
    const sorted = (entries: Iterable<readonly [string, readonly number[]]>) =>
      [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
    expect(sorted(parameterShapes(parse(config)))).toEqual(sorted(Object.entries(tensors)));
  });

  it("has PEFT's all-linear modules", () => {
    const ours = linearModules(parse(config)).map(({ name, inFeatures, outFeatures }) => [
      name,
      [inFeatures, outFeatures],
    ]);
    expect(Object.fromEntries(ours)).toEqual(linear);
  });

  it.skipIf(legacy === null)("is the same network in the older dialect", () => {
    expect(parse(legacy!)).toEqual(parse(config));
  });
});

describe("buildLegacyRope", () => {
  const factors = Array.from({ length: 16 }, (_, i) => 1 + i / 4);
  const scalings: readonly JsonObject[] = [
    { rope_type: "default" },
    { rope_type: "linear", factor: 4 },
    { rope_type: "dynamic", factor: 2.5 },
    { rope_type: "yarn", factor: 4, original_max_position_embeddings: 1024 },
    { rope_type: "yarn", factor: 8, mscale: 2, mscale_all_dim: 0.5, beta_fast: 16, beta_slow: 2, truncate: false },
    {
      rope_type: "llama3",
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 8192,
    },
    { rope_type: "longrope", short_factor: factors, long_factor: factors, original_max_position_embeddings: 1024 },
    { rope_type: "longrope", short_factor: factors, long_factor: factors, attention_factor: 1.5 },
  ];
  const types = supportedModelTypes.filter((type) => type !== "gpt2");

  // Phi 3 reads "yarn" as longrope.
  const typesWithScalings = types.flatMap((type) =>
    scalings
      .filter(({ rope_type }) => type !== "phi3" || rope_type !== "yarn")
      .map((scaling) => [type, scaling.rope_type, scaling] as const),
  );

  it.each(typesWithScalings)(
    "writes %s with %s so that the older fields alone, and both, give the same rotary positions",
    (model_type, _, scaling) => {
      const sizes = { hidden_size: 128, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 32 };
      const partial: JsonObject = ["phi", "gpt_neox"].includes(model_type) ? { partial_rotary_factor: 1 } : {};
      const parameters: JsonObject = { ...scaling, ...partial, rope_theta: 123_456 };
      const json: JsonObject = {
        model_type,
        ...neededFields(model_type),
        ...sizes,
        max_position_embeddings: 4096,
        rope_parameters:
          model_type === "gemma3_text"
            ? { full_attention: parameters, sliding_attention: { rope_type: "default", rope_theta: 777 } }
            : parameters,
      };
      const { ropes, ...network } = parse(json);
      const legacy = buildLegacyRope(json, { ropes, ...network });
      const { rope_parameters: __, ...rest } = json;
      expect(legacy).toMatchObject({ [model_type === "gpt_neox" ? "rotary_emb_base" : "rope_theta"]: 123_456 });
      expect(parse({ ...rest, ...legacy }).ropes).toEqual(ropes);
      expect(parse({ ...json, ...legacy }).ropes).toEqual(ropes);
    },
  );

  it("writes the three fields that Phi 3's class in version 4 accepts, and more where these do not suffice", () => {
    const scaling = (attention: JsonObject): JsonObject => {
      const parameters = { rope_type: "longrope", short_factor: factors, long_factor: factors, ...attention };
      const json = { model_type: "phi3", hidden_size: 128, num_attention_heads: 4, rope_parameters: parameters };
      return buildLegacyRope(json, parse(json)).rope_scaling as JsonObject;
    };
    expect(scaling({})).toEqual({ type: "longrope", short_factor: factors, long_factor: factors });
    expect(scaling({ attention_factor: 1.5 })).toMatchObject({ rope_type: "longrope", attention_factor: 1.5 });
  });

  it("adds nothing to a config of Transformers 4 or without rotary positions", () => {
    for (const { config, legacy } of cases) {
      const json = legacy ?? config;
      expect(buildLegacyRope(json, parse(json))).toEqual({});
    }
  });
});

describe("defaults", () => {
  it("equal Transformers' classes for a config with only a model_type", () => {
    const keys = [
      "vocabSize",
      "hiddenSize",
      "intermediateSize",
      "heads",
      "keyValueHeads",
      "headDim",
      "maxPositions",
    ] as const;
    const sizes = Object.fromEntries(
      supportedModelTypes.map((model_type) => {
        const config = parse({ model_type, ...neededFields(model_type) });
        const tied = config.names.head === config.names.embedding;
        const [rope] = config.ropes;
        const window = config.layers.map((layer) => layer.window).join(" ");
        return [
          model_type,
          [
            ...keys.map((key) => config[key]),
            config.layers.length,
            config.norm.epsilon,
            rope?.theta,
            rope?.rotaryDim,
            tied,
            window,
          ],
        ];
      }),
    );
    const none = (layers: number) => " ".repeat(layers - 1);
    const oneOfTwo = Array.from({ length: 26 }, (_, layer) => (layer % 2 === 1 ? "" : 4096)).join(" ");
    const fiveOfSix = Array.from({ length: 26 }, (_, layer) => (layer % 6 === 5 ? "" : 4096)).join(" ");
    expect(sizes).toEqual({
      llama: [32_000, 4096, 11_008, 32, 32, 128, 2048, 32, 1e-6, 10_000, 128, false, none(32)],
      mistral: [
        32_000,
        4096,
        14_336,
        32,
        8,
        128,
        131_072,
        32,
        1e-6,
        10_000,
        128,
        false,
        Array(32).fill(4096).join(" "),
      ],
      smollm3: [128_256, 2048, 11_008, 16, 4, 128, 32_768, 36, 1e-6, 2_000_000, 128, true, none(36)],
      qwen2: [151_936, 4096, 22_016, 32, 32, 128, 32_768, 32, 1e-6, 10_000, 128, false, none(32)],
      qwen3: [151_936, 4096, 22_016, 32, 32, 128, 32_768, 32, 1e-6, 10_000, 128, false, none(32)],
      phi: [51_200, 2048, 8192, 32, 32, 64, 2048, 24, 1e-5, 10_000, 32, false, none(24)],
      phi3: [32_064, 3072, 8192, 32, 32, 96, 4096, 32, 1e-5, 10_000, 96, false, none(32)],
      gemma2: [256_000, 2304, 9216, 8, 4, 256, 8192, 26, 1e-6, 10_000, 256, true, oneOfTwo],
      gemma3_text: [262_208, 2304, 9216, 8, 4, 256, 131_072, 26, 1e-6, 1_000_000, 256, true, fiveOfSix],
      olmo2: [50_304, 4096, 11_008, 32, 32, 128, 2048, 32, 1e-5, 10_000, 128, false, none(32)],
      granite: [32_000, 4096, 11_008, 32, 32, 128, 2048, 32, 1e-6, 10_000, 128, false, none(32)],
      granitemoehybrid: [32_000, 4096, 1024, 32, 32, 128, 2048, 32, 1e-6, 10_000, 128, false, none(32)],
      gpt_neox: [50_432, 6144, 24_576, 64, 64, 96, 2048, 44, 1e-5, 10_000, 24, false, none(44)],
      gpt2: [50_257, 768, 3072, 12, 12, 64, 1024, 12, 1e-5, undefined, undefined, true, none(12)],
    });
  });

  it("use rope_theta with the older rope_scaling and prefer rope_type to type", () => {
    const scaled = (rope_scaling: JsonObject) =>
      parse({ ...llama, rope_parameters: null, rope_theta: 500, rope_scaling });
    expect(scaled({ type: "linear", factor: 2 }).ropes[0]).toEqual({
      theta: 500,
      rotaryDim: 4,
      scaling: { kind: "linear", factor: 2 },
    });
    expect(scaled({ rope_type: "dynamic", type: "linear", factor: 2 }).ropes[0].scaling.kind).toBe("dynamic");
  });

  it("accept SmolLM 3's layers without positions as a list or an interval", () => {
    const ropes = (fields: JsonObject) =>
      parse({ model_type: "smollm3", num_hidden_layers: 4, ...fields }).layers.map(({ rope }) => rope);
    expect(ropes({})).toEqual([0, 0, 0, undefined]);
    expect(ropes({ no_rope_layer_interval: 2 })).toEqual([0, undefined, 0, undefined]);
    expect(ropes({ no_rope_layers: [0, 1, 1, 1] })).toEqual([undefined, 0, 0, 0]);
  });

  it("scale GPT-2's attention by layer if configured", () => {
    const { attentionScale, layers } = parse({ model_type: "gpt2", scale_attn_by_inverse_layer_idx: true });
    expect(attentionScale).toBe(1 / 8);
    expect(layers[3].attentionScale).toBe(1 / 32);
    expect(parse({ model_type: "gpt2", scale_attn_weights: false }).attentionScale).toBe(1);
  });

  it("scale Gemma 3's full layers only, and by rope_type only", () => {
    const ropes = (rope_scaling: JsonObject) =>
      parse({ model_type: "gemma3_text", rope_theta: 5, rope_local_base_freq: 3, rope_scaling }).ropes;
    const plain = { rotaryDim: 256, scaling: { kind: "default" } };
    const linear = { kind: "linear", factor: 8 };
    expect(ropes({ rope_type: "linear", factor: 8 })).toEqual([
      { theta: 5, rotaryDim: 256, scaling: linear },
      { ...plain, theta: 3 },
    ]);
    // Gemma3TextConfig updates { rope_type: "default" } with these fields, so that `type` is not
    // looked at.
    expect(ropes({ type: "linear", factor: 8 })[0]).toEqual({ ...plain, theta: 5 });
  });

  it("cap Gemma 2's attention scores and logits unless the config says null", () => {
    const caps = (fields: JsonObject) => {
      const { attentionSoftcap, logitSoftcap } = parse({ model_type: "gemma2", ...fields });
      return [attentionSoftcap, logitSoftcap];
    };
    expect(caps({})).toEqual([50, 30]);
    expect(caps({ attn_logit_softcapping: 20, final_logit_softcapping: null })).toEqual([20, undefined]);
  });

  it("scale nothing in Granite", () => {
    const { attentionScale, embeddingScale, residualScale, logitScale } = parse({ model_type: "granite" });
    expect([attentionScale, embeddingScale, residualScale, logitScale]).toEqual([1, 1, 1, 1]);
  });

  it("resolve a negative padding token from the end", () => {
    const row = (fields: JsonObject) => parse({ model_type: "phi3", vocab_size: 32_064, ...fields }).paddingToken;
    expect(row({})).toBe(32_000);
    expect(row({ pad_token_id: null })).toBeUndefined();
    expect(row({ pad_token_id: -1 })).toBe(32_063);
    expect(row({ pad_token_id: 40_000 })).toBeUndefined();
  });

  it("accept Phi-3's old names of LongRoPE", () => {
    const factors = Array.from({ length: 2 }, () => 1);
    const rope_scaling = { type: "su", short_factor: factors, long_factor: factors };
    const sizes = { hidden_size: 16, num_attention_heads: 4, max_position_embeddings: 16_384 };
    const [rope] = parse({ model_type: "phi3", ...sizes, rope_scaling }).ropes;
    // sqrt(1 + log(16384 / 4096) / log(4096))
    expect(rope.scaling).toMatchObject({ kind: "longrope", originalLength: 4096, attentionFactor: Math.sqrt(7 / 6) });
  });
});

describe("bad config.json", () => {
  it("lists the supported architectures for an unknown model_type", () => {
    const error = errorOf({ model_type: "mamba2" });
    expect(error.code).toBe("MODEL_UNSUPPORTED");
    expect(error.message).toBe(
      'model_type "mamba2" in model/config.json is not supported. Supported: llama, mistral, smollm3, qwen2, qwen3, ' +
        "phi, phi3, gemma2, gemma3_text, olmo2, granite, granitemoehybrid, gpt_neox, gpt2. See docs/models.md for adding an architecture.",
    );
  });

  it.each([
    ["FILE_CORRUPT", "model_type", { model_type: null }],
    ["FILE_CORRUPT", "model_type", { model_type: 3 }],
    ["MODEL_UNSUPPORTED", "constructor", { model_type: "constructor" }],
    ["FILE_CORRUPT", "hidden_size", { hidden_size: "16" }],
    ["FILE_CORRUPT", "hidden_size", { hidden_size: -16 }],
    ["FILE_CORRUPT", "num_hidden_layers", { num_hidden_layers: 1e9 }],
    ["FILE_CORRUPT", "vocab_size", { vocab_size: 1.5 }],
    ["FILE_CORRUPT", "num_key_value_heads", { num_key_value_heads: 3 }],
    ["FILE_CORRUPT", "rms_norm_eps", { rms_norm_eps: "small" }],
    ["FILE_CORRUPT", "tie_word_embeddings", { tie_word_embeddings: "yes" }],
    ["MODEL_UNSUPPORTED", "hidden_act", { hidden_act: "xielu" }],
    ["MODEL_UNSUPPORTED", "bitsandbytes", { quantization_config: { quant_method: "bitsandbytes" } }],
    ["FILE_CORRUPT", "rope_parameters", { rope_parameters: [] }],
    ["MODEL_UNSUPPORTED", "rope_parameters.rope_type", { rope_parameters: { rope_type: "mrope" } }],
    ["FILE_CORRUPT", "rope_parameters.factor", { rope_parameters: { rope_type: "linear" } }],
    ["FILE_CORRUPT", "rope_scaling.factor", { rope_scaling: { type: "linear", factor: 0 } }],
    ["FILE_CORRUPT", "rope_parameters.short_factor", { rope_parameters: { rope_type: "longrope", short_factor: [1] } }],
    ["MODEL_UNSUPPORTED", "partial_rotary_factor", { model_type: "phi", partial_rotary_factor: 0.3 }],
    ["FILE_CORRUPT", "layer_types", { model_type: "qwen2", layer_types: ["full_attention"] }],
    ["MODEL_UNSUPPORTED", "layer_types", { model_type: "qwen2", layer_types: ["full_attention", "linear_attention"] }],
    ["FILE_CORRUPT", "sliding_window", { model_type: "gemma3_text", head_dim: 4, sliding_window: null }],
    ["FILE_CORRUPT", "no_rope_layers", { model_type: "smollm3", no_rope_layers: [1] }],
    [
      "MODEL_UNSUPPORTED",
      "use_bidirectional_attention",
      { model_type: "gemma3_text", use_bidirectional_attention: true },
    ],
    ["MODEL_UNSUPPORTED", "num_local_experts", { model_type: "granitemoehybrid" }],
    ["MODEL_UNSUPPORTED", "num_local_experts", { model_type: "granitemoehybrid", num_local_experts: 32 }],
    ["MODEL_UNSUPPORTED", "layer_types", { model_type: "granitemoehybrid", num_local_experts: 0 }],
    [
      "MODEL_UNSUPPORTED",
      "layer_types",
      { model_type: "granitemoehybrid", num_local_experts: 0, layer_types: ["mamba", "attention"] },
    ],
    [
      "MODEL_UNSUPPORTED",
      "layer_types",
      { model_type: "granitemoehybrid", num_local_experts: 0, layer_types: ["attention", "sliding_attention"] },
    ],
    [
      "MODEL_UNSUPPORTED",
      "position_embedding_type",
      { model_type: "granitemoehybrid", num_local_experts: 0, position_embedding_type: "alibi" },
    ],
    ["FILE_CORRUPT", "num_attention_heads", { model_type: "gpt_neox", num_attention_heads: 3 }],
    ["FILE_CORRUPT", "logits_scaling", { model_type: "granite", logits_scaling: 0 }],
    ["MODEL_UNSUPPORTED", "add_cross_attention", { model_type: "gpt2", add_cross_attention: true }],
    ["FILE_CORRUPT", "n_head", { model_type: "gpt2", n_head: 7 }],
  ])("%s for %s: %j", (code, named, fields) => {
    const error = errorOf({ ...llama, ...(fields as JsonObject) });
    expect(error.code).toBe(code);
    expect(error.message).toContain(named);
    expect(error.message).toContain("model/config.json");
  });
});
