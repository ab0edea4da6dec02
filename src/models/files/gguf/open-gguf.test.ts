import { ggufArchitectures } from "../../architectures/index.js";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/json.js";
import { openGguf } from "./open-gguf.js";

const folder = new URL("../../../../test/fixtures/files/gguf/", import.meta.url).pathname;

/**
 * The numbers that the fixtures' models were filled with: see `pattern` in
 * test/fixtures/files/generate.py.
 */
function pattern(name: string, count: number): Float32Array {
  let seed = 2166136261;
  for (const byte of new TextEncoder().encode(name)) seed = Math.imul(seed ^ byte, 16777619) >>> 0;
  return Float32Array.from({ length: count }, (_, i) => (((seed + 40503 * i) % 256) - 128) / 16);
}

function readExpectedConfig(name: string): JsonObject {
  return JSON.parse(readFileSync(`${folder}${name}.config.json`, "utf8")) as JsonObject;
}

const models = [
  "llama",
  "llama-fused",
  "llama-linear",
  "mistral",
  "smollm3",
  "qwen2",
  "qwen3",
  "gemma2",
  "gemma3",
  "olmo2",
  "granite",
  "phi",
  "phi3",
  "gpt2",
];

describe("the weights of a GGUF file", () => {
  it.each(models)("have Hugging Face's names and values: %s", async (name) => {
    const model = await openGguf(`${folder}${name}.gguf`, ggufArchitectures);
    for (const { name: tensor, shape } of model.weights.entries.values()) {
      const numbers = await model.weights.readFloat32(tensor);
      expect({ tensor, shape, numbers }).toEqual({ tensor, shape, numbers: pattern(tensor, numbers.length) });
    }
    await model.close();
  });

  it.each(["llama", "llama-fused"])("have Hugging Face's shapes, none missing: %s", async (name) => {
    const model = await openGguf(`${folder}${name}.gguf`, ggufArchitectures);
    const shapes = JSON.parse(readFileSync(`${folder}llama.shapes.json`, "utf8")) as Record<string, number[]>;
    const ours = Object.fromEntries([...model.weights.entries.values()].map((entry) => [entry.name, entry.shape]));
    expect(ours).toEqual(shapes);
    await model.close();
  });

  it("are read from all parts of a split file, given the first", async () => {
    const model = await openGguf(`${folder}llama-split-00001-of-00003.gguf`, ggufArchitectures);
    expect(model.weights.entries.size).toBe(12);
    expect(new Set([...model.weights.entries.values()].map(({ file }) => file)).size).toBe(3);
    for (const { name } of model.weights.entries.values()) {
      const numbers = await model.weights.readFloat32(name);
      expect(numbers).toEqual(pattern(name, numbers.length));
    }
    await model.close();
    await expect(openGguf(`${folder}llama-split-00002-of-00003.gguf`, ggufArchitectures)).rejects.toMatchObject({
      code: "FORMAT_UNSUPPORTED",
      message: expect.stringContaining("-00001-of-00003.gguf") as string,
    });
  });

  it("mark bytes that can be mapped in place", async () => {
    const path = `${folder}llama.gguf`;
    const model = await openGguf(path, ggufArchitectures);
    const bytes = readFileSync(path);
    const value = model.weights.entries.get("model.layers.0.self_attn.v_proj.weight");
    expect(value).toMatchObject({ dtype: "F16", mappable: true, file: path, byteLength: 16 * 16 * 2 });
    const raw = await model.weights.readBytes("model.layers.0.self_attn.v_proj.weight");
    const start = value?.offset ?? 0;
    expect(Buffer.compare(raw, bytes.subarray(start, start + 512))).toBe(0);
    expect(model.weights.entries.get("model.layers.0.self_attn.q_proj.weight")?.mappable).toBe(false);
    await model.close();
  });

  it("restore the order of interleaved rows and GPT-2's transposed matrices", async () => {
    for (const [file, name, shape] of [
      ["llama", "model.layers.0.self_attn.q_proj.weight", [32, 16]],
      ["gpt2", "transformer.h.0.attn.c_attn.weight", [16, 48]],
    ] as const) {
      const { weights } = await openGguf(`${folder}${file}.gguf`, ggufArchitectures);
      expect(weights.entries.get(name)).toMatchObject({ shape, mappable: false });
      expect(await weights.readFloat32(name)).toEqual(pattern(name, shape[0] * shape[1]));
      await weights.close();
    }
  });

  it("are read into given shared memory", async () => {
    const model = await openGguf(`${folder}llama.gguf`, ggufArchitectures);
    const target = new Float32Array(new SharedArrayBuffer(16 * 4 * 2), 16 * 4, 16);
    const name = "model.norm.weight";
    expect(await model.weights.readFloat32(name, target)).toBe(target);
    expect(Array.from(target)).toEqual(Array.from(pattern(name, 16)));
    await expect(model.weights.readFloat32(name, new Float32Array(3))).rejects.toMatchObject({
      code: "SHAPE_MISMATCH",
    });
    await expect(model.weights.readFloat32("nothing")).rejects.toMatchObject({ code: "WEIGHTS_MISMATCH" });
    await model.close();
    await expect(model.weights.readFloat32(name)).rejects.toMatchObject({ code: "INVALID_STATE" });
  });
});

describe("the config of a GGUF file", () => {
  // What the format does not carry, or what both say in their own way.
  const notCarried = new Set([
    ..."dtype use_cache transformers_version initializer_range pretraining_tp attn_pdrop embd_pdrop resid_pdrop".split(
      " ",
    ),
    ..."max_window_layers _sliding_window_pattern use_bidirectional_attention n_ctx n_inner layer_types rope_parameters".split(
      " ",
    ),
    ..."summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj".split(" "),
    ..."add_cross_attention bos_token_id".split(" "),
  ]);

  it.each(models.filter((name) => name !== "mistral" && name !== "llama-fused"))(
    "is Transformers': %s",
    async (name) => {
      const model = await openGguf(`${folder}${name}.gguf`, ggufArchitectures);
      const expected = Object.entries(readExpectedConfig(name)).filter(([key]) => !notCarried.has(key));
      expect(model.config).toMatchObject(Object.fromEntries(expected));
      await model.close();
    },
  );

  it("maps a Mistral model to llama, as llama.cpp does", async () => {
    const model = await openGguf(`${folder}mistral.gguf`, ggufArchitectures);
    expect(model.config).toMatchObject({ model_type: "llama", num_key_value_heads: 2, tie_word_embeddings: false });
    await model.close();
  });

  it.each(["llama-linear", "qwen2", "qwen3", "phi3"])("preserves rope scaling: %s", async (name) => {
    const model = await openGguf(`${folder}${name}.gguf`, ggufArchitectures);
    expect(model.config.rope_parameters).toMatchObject(readExpectedConfig(name).rope_parameters as JsonObject);
    await model.close();
  });

  it("recovers Llama 3's scaling from its factors", async () => {
    const model = await openGguf(`${folder}llama.gguf`, ggufArchitectures);
    expect(model.config.rope_parameters).toEqual(readExpectedConfig("llama").rope_parameters);
    await model.close();
  });

  it("marks Gemma 3's sliding layers", async () => {
    const model = await openGguf(`${folder}gemma3.gguf`, ggufArchitectures);
    const { layer_types: types, rope_parameters: rope } = model.config;
    expect(types).toEqual(readExpectedConfig("gemma3").layer_types);
    expect(rope).toEqual({
      full_attention: { rope_type: "default", rope_theta: 1_000_000 },
      sliding_attention: { rope_type: "default", rope_theta: 10_000 },
    });
    await model.close();
  });

  it("ends completions at the chat template's end-of-turn token", async () => {
    const model = await openGguf(`${folder}qwen3.gguf`, ggufArchitectures);
    expect(model.generationConfig).toEqual({ eos_token_id: 2, pad_token_id: 0 });
    await model.close();
  });
});
