import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { parseModelConfig } from "../architectures/index.js";
import { countParameters, estimateModelMemory, usesPackedWeights } from "../weights/estimate-model-memory.js";
import { modelList } from "./model-list.js";
import { findModel, registeredModels, registerModel } from "./model-registry.js";

describe("the list of models", () => {
  it.each(modelList.map((entry) => [entry.id, entry] as const))(
    "has the parameters of its network: %s",
    (_id, entry) => {
      const count = countParameters(parseModelConfig(entry.config, entry.id));
      // Model cards round; 1 B for Gemma 3 is 999.9 M, 1.1 B for TinyLlama 1100.05 M.
      expect(Math.abs(count / entry.parameters - 1)).toBeLessThan(0.005);
    },
  );

  it("matches docs/models.md", async () => {
    const page = await readFile(new URL("../../../docs/models.md", import.meta.url), "utf8");
    const rows = page.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
    const listed = new Map(rows.map(([, id, , , inference, train]) => [id, [inference, train]]));
    for (const { id, config } of modelList) {
      const network = parseModelConfig(config, id);
      const [inference, train] = (["inference", "train"] as const).map((use) =>
        ([32, 8, 4] as const).map((bits) => (estimateModelMemory(network, { use, bits }) / 1e9).toFixed(1)).join(" / "),
      );
      expect([id, ...(listed.get(`\`${id}\``) ?? [])]).toEqual([id, inference, train]);
    }
  });

  it("has no duplicates", () => {
    expect(new Set(modelList.map(({ id }) => id)).size).toBe(modelList.length);
  });
});

describe("memory", () => {
  const smol = parseModelConfig(
    modelList.find(({ id }) => id === "HuggingFaceTB/SmolLM2-135M-Instruct")!.config,
    "config.json",
  );

  const [llama360, large, llama1b] = [
    {
      hidden_size: 960,
      intermediate_size: 2560,
      num_hidden_layers: 32,
      num_attention_heads: 15,
      num_key_value_heads: 5,
      vocab_size: 49152,
    },
    {
      hidden_size: 640,
      intermediate_size: 2048,
      num_hidden_layers: 12,
      num_attention_heads: 8,
      num_key_value_heads: 2,
      vocab_size: 262144,
    },
    {
      hidden_size: 2048,
      intermediate_size: 5632,
      num_hidden_layers: 22,
      num_attention_heads: 32,
      num_key_value_heads: 4,
      vocab_size: 49152,
      tie_word_embeddings: false,
    },
  ].map((sizes) => parseModelConfig({ model_type: "llama", tie_word_embeddings: true, ...sizes }, "config.json"));

  const [tinyLlama, qwen, gemma, llama32, llama7b] = [
    "TinyLlama",
    "Qwen2.5-0.5B",
    "gemma-3-270m",
    "Llama-3.2-1B",
    "Llama-2-7b-hf",
  ].map((name) => parseModelConfig(modelList.find(({ id }) => id.includes(name))!.config, "config.json"));
  const networks = { smol, llama360, large, llama1b, tinyLlama, qwen, gemma, llama32, llama7b };

  // Peaks that were measured, in MB, with SmolLM2-135M and the shapes of TinyLlama, Qwen2.5-0.5B,
  // Gemma-3-270M, Llama-3.2-1B and Llama-2-7b, and with llamas of 362 million, of 227 million with
  // a large vocabulary, and of 1.2 billion parameters.
  it.each([
    ["smol", { use: "inference" }, 811],
    ["smol", { use: "train", microBatchTokens: 518, packed: true }, 3410],
    ["smol", { use: "train", microBatchTokens: 518, bits: 4 }, 1395],
    ["llama360", { use: "train", microBatchTokens: 512, packed: true }, 7230],
    ["llama360", { use: "train", microBatchTokens: 512 }, 4390],
    ["llama360", { use: "train", microBatchTokens: 256, bits: 8 }, 2042],
    ["llama360", { use: "train", microBatchTokens: 256, bits: 4 }, 1460],
    ["large", { use: "train", microBatchTokens: 512, packed: true }, 4800],
    ["large", { use: "train", microBatchTokens: 512 }, 3020],
    ["llama1b", { use: "train", microBatchTokens: 512 }, 10_530],
    ["llama32", { use: "train", microBatchTokens: 128, bits: 8 }, 4446],
    ["llama32", { use: "train", microBatchTokens: 128, bits: 4 }, 2602],
    ["tinyLlama", { use: "inference", bits: 4 }, 897],
    ["tinyLlama", { use: "inference", bits: 8 }, 1599],
    ["qwen", { use: "inference", bits: 4 }, 648],
    ["qwen", { use: "inference", bits: 8 }, 964],
    ["tinyLlama", { use: "train", microBatchTokens: 128, bits: 4, gradientCheckpointing: false }, 2193],
    ["tinyLlama", { use: "train", microBatchTokens: 128, bits: 4, layersToTransform: [18, 19, 20, 21] }, 1296],
    ["tinyLlama", { use: "train", microBatchTokens: 128, bits: 8, layersToTransform: [18, 19, 20, 21] }, 2859],
    ["qwen", { use: "train", microBatchTokens: 128, bits: 4 }, 1414],
    ["qwen", { use: "train", microBatchTokens: 128, bits: 8 }, 2114],
    ["gemma", { use: "train", microBatchTokens: 128, bits: 4 }, 1036],
    ["smol", { use: "train", microBatchTokens: 512, bits: 4, gradientCheckpointing: true }, 701],
    ["qwen", { use: "train", microBatchTokens: 400, bits: 4 }, 1961],
    ["qwen", { use: "train", microBatchTokens: 400, bits: 4, gradientCheckpointing: true }, 1474],
    ["llama7b", { use: "train", microBatchTokens: 606, bits: 4, gradientCheckpointing: true }, 10_471],
  ] as const)("is near what was measured: %s, %o", (name, usage, measured) => {
    expect(Math.abs(estimateModelMemory(networks[name], usage) / (measured * 1e6) - 1)).toBeLessThan(0.1);
  });

  it("is less without packed weights", () => {
    const needed = estimateModelMemory(smol, { use: "train", packed: true });
    expect(needed).toBeGreaterThan(estimateModelMemory(smol, { use: "train" }));
    expect(usesPackedWeights(smol, 32, 2 * needed)).toBe(true);
    expect(usesPackedWeights(smol, 32, 1.9 * needed)).toBe(false);
    expect(usesPackedWeights(smol, 8, 100 * needed)).toBe(false);
  });

  it("is less in fewer bits, more for training, and grows with the tokens of a pass", () => {
    for (const { estimateMemory: memory } of registeredModels()) {
      expect(memory({ bits: 4 })).toBeLessThan(memory({ bits: 8 }));
      expect(memory({ use: "train", bits: 8 })).toBeLessThan(memory({ use: "train" }));
      expect(memory({ use: "train" })).toBeGreaterThan(memory({ use: "inference" }));
      expect(memory({ use: "train", microBatchTokens: 1024 })).toBeGreaterThan(
        memory({ use: "train", microBatchTokens: 512 }),
      );
    }
  });
});

describe("findModel", () => {
  it("finds registered models regardless of case and file", () => {
    expect(findModel("tinyllama/tinyllama-1.1b-chat-v1.0")!.model.id).toBe("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
    expect(findModel("HuggingFaceTB/SmolLM2-135M-Instruct:model.gguf")!.similarTo).toBeUndefined();
  });

  it("matches others with the nearest of their family, with the size in their name", () => {
    const { model, similarTo } = findModel("somebody/Qwen3-8B-Tuned")!;
    expect([similarTo, model.parameters, model.defaults.completionPrefix]).toEqual([
      "Qwen/Qwen3-4B",
      8e9,
      "<think>\n\n</think>\n\n",
    ]);
    expect(model.estimateMemory() / findModel("Qwen/Qwen3-4B")!.model.estimateMemory()).toBeCloseTo(8 / 4.022, 6);
    expect(findModel("Qwen/Qwen3-30B-Instruct")!.model.defaults).toEqual({});
    expect(findModel("HuggingFaceTB/SmolLM3-3B-Base")!.model.defaults).toEqual({});
    expect(findModel("unsloth/Llama-3.2-1B")!.similarTo).toBe("meta-llama/Llama-3.2-1B-Instruct");
    expect(findModel("unknown/other-3B")).toBeUndefined();
  });

  it("finds user-registered models", () => {
    const config = modelList[0].config;
    registerModel({ id: "me/mine", parameters: 135e6, license: "MIT", config, defaults: { maxCompletionLength: 4 } });
    expect(findModel("me/mine")!.model).toMatchObject({
      modelType: "llama",
      license: "MIT",
      defaults: { maxCompletionLength: 4 },
    });
    expect(registeredModels().map(({ id }) => id)).toContain("me/mine");
    expect(() => registerModel({ id: "me/bad", parameters: 1, license: "", config: { model_type: "mamba" } })).toThrow(
      "mamba",
    );
    expect(() => registerModel({ id: "", parameters: 1, license: "", config })).toThrow("hub `id`");
  });
});
