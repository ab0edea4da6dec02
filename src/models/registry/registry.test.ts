import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { parseModelConfig } from "../architectures/index.js";
import { countParameters, estimateMemory } from "./memory.js";
import { modelList } from "./list.js";
import { findModel, registeredModels, registerModel } from "./registry.js";

describe("the list of models", () => {
  it.each(modelList.map((entry) => [entry.id, entry] as const))(
    "has the parameters of its network: %s",
    (_id, entry) => {
      const count = countParameters(parseModelConfig(entry.config, entry.id));
      // Model cards round; 1 B for Gemma 3 is 999.9 M, 1.1 B for TinyLlama 1100.05 M.
      expect(Math.abs(count / entry.parameters - 1)).toBeLessThan(0.005);
    },
  );

  it("is the one of docs/models.md", async () => {
    const page = await readFile(new URL("../../../docs/models.md", import.meta.url), "utf8");
    expect(modelList.filter(({ id }) => !page.includes(`\`${id}\``))).toEqual([]);
  });

  it("names each once", () => {
    expect(new Set(modelList.map(({ id }) => id)).size).toBe(modelList.length);
  });
});

describe("memory", () => {
  const smol = parseModelConfig(
    modelList.find(({ id }) => id === "HuggingFaceTB/SmolLM2-135M-Instruct")!.config,
    "config.json",
  );

  // Peaks that were measured with SmolLM2-135M, in MB.
  it.each([
    ["play", 32, 866],
    ["play", 8, 804],
    ["play", 4, 702],
  ] as const)("is near what was measured: %s in %i bits", (use, bits, measured) => {
    expect(Math.abs(estimateMemory(smol, { use, bits }) / (measured * 1e6) - 1)).toBeLessThan(0.15);
  });

  it.each([
    [32, 518, 3606],
    [8, 518, 2518],
    [8, 1537, 4129],
    [4, 518, 2259],
  ] as const)("is near what was measured: training in %i bits, passes of %i tokens", (bits, maxTokens, measured) => {
    const estimate = estimateMemory(smol, { use: "train", bits, maxTokens });
    expect(Math.abs(estimate / (measured * 1e6) - 1)).toBeLessThan(0.1);
  });

  it("is less in fewer bits, more for training, and grows with the tokens of a pass", () => {
    for (const { memory } of registeredModels()) {
      for (const use of ["play", "train"] as const)
        expect(memory({ use, bits: 4 })).toBeLessThan(memory({ use, bits: 8 }));
      expect(memory({ use: "train", bits: 8 })).toBeLessThan(memory({ use: "train" }));
      expect(memory({ use: "train" })).toBeGreaterThan(memory({ use: "play" }));
      expect(memory({ use: "train", maxTokens: 1024 })).toBeGreaterThan(memory({ use: "train", maxTokens: 512 }));
    }
  });
});

describe("findModel", () => {
  it("knows the listed ones, whatever the case and the file", () => {
    expect(findModel("tinyllama/tinyllama-1.1b-chat-v1.0")!.model.id).toBe("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
    expect(findModel("HuggingFaceTB/SmolLM2-135M-Instruct:model.gguf")!.takenFor).toBeUndefined();
  });

  it("takes another for the nearest of its family, with the size that its name tells", () => {
    const { model, takenFor } = findModel("somebody/Qwen3-8B-Tuned")!;
    expect([takenFor, model.parameters, model.defaults.replyPrefix]).toEqual([
      "Qwen/Qwen3-4B",
      8e9,
      "<think>\n\n</think>\n\n",
    ]);
    expect(model.memory() / findModel("Qwen/Qwen3-4B")!.model.memory()).toBeCloseTo(8 / 4.022, 6);
    expect(findModel("Qwen/Qwen3-30B-Instruct")!.model.defaults).toEqual({});
    expect(findModel("HuggingFaceTB/SmolLM3-3B-Base")!.model.defaults).toEqual({});
    expect(findModel("unsloth/Llama-3.2-1B")!.takenFor).toBe("meta-llama/Llama-3.2-1B-Instruct");
    expect(findModel("nobody/nothing-3B")).toBeUndefined();
  });

  it("finds what a user added", () => {
    const config = modelList[0].config;
    registerModel({ id: "me/mine", parameters: 135e6, licence: "MIT", config, defaults: { maxNewTokens: 4 } });
    expect(findModel("me/mine")!.model).toMatchObject({
      modelType: "llama",
      licence: "MIT",
      defaults: { maxNewTokens: 4 },
    });
    expect(registeredModels().map(({ id }) => id)).toContain("me/mine");
    expect(() => registerModel({ id: "me/bad", parameters: 1, licence: "", config: { model_type: "mamba" } })).toThrow(
      "mamba",
    );
    expect(() => registerModel({ id: "", parameters: 1, licence: "", config })).toThrow("hub id");
  });
});
