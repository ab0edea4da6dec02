import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { availableMemory, estimateRunMemory } from "./estimate-run-memory.js";
import { resolveTrainConfig } from "./run-settings.js";
import { startRun } from "./run.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "memory-"));
});
afterAll(() => rm(folder, { recursive: true }));

const config = (model: string, more = {}) => resolveTrainConfig({ env: "Blackjack-v1", model, ...more });
const TINY_LLAMA = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";

describe("estimateRunMemory", () => {
  it("estimates by model id, and names what would fit", async () => {
    const estimate = (available: number, more = {}) => estimateRunMemory(config(TINY_LLAMA, more), available);
    const all = { layersToTransform: "all" };
    const need = (await estimate(64e9))!;
    expect(need.fit).toBe("fits");
    expect(need.text).toMatch(
      /^Training TinyLlama\/TinyLlama-1\.1B-Chat-v1\.0 needs about \d+\.\d GB of memory; 64\.0 GB are free\.$/,
    );
    expect((await estimate(0.95 * need.needed))!.fit).toBe("tight");
    const advice = async (available: number, more = {}) => {
      const { fit, text } = (await estimate(available, more))!;
      return [fit, text.slice(text.indexOf("free. ") + "free. ".length)];
    };
    const smaller = (await estimate(64e9, { ...all, microBatchTokens: 128 }))!.needed;
    expect(await advice(1.01 * smaller, { ...all, microBatchTokens: 2048 })).toEqual([
      "insufficient",
      expect.stringMatching(/^--micro-batch-tokens 128 needs about \d+\.\d GB\.$/),
    ]);
    expect(await advice(3.5e9, { ...all, quantize: "8" })).toEqual([
      "insufficient",
      expect.stringMatching(/^(--quantize 4|--micro-batch-tokens 128)/),
    ]);
    expect(await advice(2e9, all)).toEqual(["insufficient", expect.stringContaining("--quantize 4")]);
    expect(await advice(0.3e9, all)).toEqual(["insufficient", expect.stringContaining("smaller model")]);
  });

  it("counts the teacher's model, unless its weights are the student's", async () => {
    const phi = "microsoft/phi-2";
    const run = join(folder, "phi-run");
    const adapter = join(folder, "phi-adapter");
    await mkdir(run);
    await mkdir(adapter);
    await writeFile(join(run, "config.json"), JSON.stringify({ version: 2, model: phi }));
    await writeFile(
      join(adapter, "adapter_config.json"),
      JSON.stringify({ peft_type: "LORA", target_modules: ["q_proj"], base_model_name_or_path: phi }),
    );
    const estimate = async (teacher?: string) => (await estimateRunMemory(config(TINY_LLAMA, { teacher }), 64e9))!;
    const alone = (await estimate()).needed;
    for (const teacher of [phi, run, adapter]) {
      const { needed, text } = await estimate(teacher);
      expect(needed - alone).toBeGreaterThan(4 * 2.7e9);
      expect(text).toMatch(/needs about \d+\.\d GB of memory, 1\d\.\d GB of it for the teacher; 64\.0 GB are free\.$/);
    }
    for (const teacher of [TINY_LLAMA, "embedded", "http://127.0.0.1:8000/v1", "unknown"])
      expect((await estimate(teacher)).needed).toBe(alone);
    expect((await estimateRunMemory(config(TINY_LLAMA, { teacher: phi }), 12e9))!.fit).toBe("insufficient");
  });

  it("is lower with fewer trained layers", async () => {
    const needed = async (layersToTransform: string) =>
      (await estimateRunMemory(config(TINY_LLAMA, { layersToTransform, quantize: "4" })))!.needed;
    expect(await needed("last-4")).toBeLessThan(0.8 * (await needed("all")));
    expect(await needed("0")).toBeLessThan(await needed("all"));
    expect(await needed("18-21")).toBe(await needed("last-4"));
  });

  it("is lower at 8 bits and with smaller micro-batches", async () => {
    const needed = async (more: object) => (await estimateRunMemory(config(TINY_LLAMA, more)))!.needed;
    expect(await needed({ quantize: "8" })).toBeLessThan(await needed({}));
    expect(await needed({ microBatchTokens: 256 })).toBeLessThan(await needed({ microBatchTokens: 2048 }));
  });

  it("counts the reference policy's copy of the trained values", async () => {
    const needed = async (more: object) => (await estimateRunMemory({ ...config(TINY_LLAMA), ...more }))!.needed;
    const save = { modulesToSave: "lm_head" };
    const head = 2048 * 32_000;
    for (const copy of [{ syncRefModel: true }, { algorithm: "dpo" }, { algorithm: "kto" }]) {
      const adapterCopy = (await needed(copy)) - (await needed({}));
      expect(adapterCopy).toBeGreaterThan(4 * 12e6);
      expect((await needed({ ...save, ...copy })) - (await needed(save)) - adapterCopy).toBeCloseTo(12 * head, -6);
    }
  });

  it("reads the config.json of a folder", async () => {
    const sizes = {
      hidden_size: 576,
      num_hidden_layers: 30,
      num_attention_heads: 9,
      num_key_value_heads: 3,
      intermediate_size: 1536,
      vocab_size: 49_152,
      tie_word_embeddings: true,
    };
    await writeFile(join(folder, "config.json"), JSON.stringify({ model_type: "llama", ...sizes }));
    const own = (await estimateRunMemory(config(folder)))!.needed;
    expect(own).toBe((await estimateRunMemory(config("HuggingFaceTB/SmolLM2-135M-Instruct")))!.needed);
  });

  it("returns undefined for unknown sizes and for the embedded model", async () => {
    expect(await estimateRunMemory(config("missing/missing"))).toBeUndefined();
    expect(await estimateRunMemory(config("embedded"))).toBeUndefined();
  });

  it("compares with the free memory", () => {
    expect(availableMemory()).toBeGreaterThan(1e6);
  });
});

describe("defaults of a model", () => {
  it("apply, and can be overridden", () => {
    expect(config("Qwen/Qwen3-0.6B").completionPrefix).toBe("<think>\n\n</think>\n\n");
    expect(config("Qwen/Qwen3-0.6B", { completionPrefix: "Action:" }).completionPrefix).toBe("Action:");
    expect(config("Qwen/Qwen2.5-0.5B-Instruct").completionPrefix).toBe("");
  });
});

describe("startRun", () => {
  it("refuses a run that needs more memory than is free, before it loads the model, unless it must not check", async () => {
    const model = join(folder, "large");
    await mkdir(model);
    const sizes = { hidden_size: 32_768, num_hidden_layers: 256, num_attention_heads: 256, intermediate_size: 131_072 };
    const config = { model_type: "llama", vocab_size: 128_000, ...sizes };
    await writeFile(join(model, "config.json"), JSON.stringify(config));
    const start = (more: object) => startRun({ env: "Blackjack-v1", turns: 8, model, ...more }, join(folder, "run"));
    await expect(start({})).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(
        /needs about [\d.]+ GB of memory; .* are free\. Use a smaller model.*--no-check-memory/,
      ),
    });
    await expect(start({ checkMemory: false })).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  });
});
