import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { availableMemory, estimateRunMemory } from "./estimate-run-memory.js";
import { resolveTrainConfig } from "./run-settings.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "memory-"));
});
afterAll(() => rm(folder, { recursive: true }));

const config = (model: string, more = {}) => resolveTrainConfig({ env: "Blackjack-v1", model, ...more });
const TINY_LLAMA = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";

describe("estimateRunMemory", () => {
  it("estimates by model id, and warns if memory is insufficient", async () => {
    const need = (await estimateRunMemory(config(TINY_LLAMA), 64e9))!;
    expect(need.warning).toBeUndefined();
    expect(need.text).toMatch(
      /^Training TinyLlama\/TinyLlama-1\.1B-Chat-v1\.0 needs about \d+\.\d GB of memory; 64\.0 GB are free\.$/,
    );
    const { warning } = (await estimateRunMemory(config(TINY_LLAMA), 10e9))!;
    expect(warning).toMatch(/Use --quantize 8 \(\d+\.\d GB\), smaller micro-batches/);
  });

  it("does not suggest quantization that does not fit either", async () => {
    const { warning } = (await estimateRunMemory(config(TINY_LLAMA), 1e9))!;
    expect(warning).toMatch(/Use smaller micro-batches \(--micro-batch-tokens\)/);
  });

  it("is lower at 8 bits and with smaller micro-batches", async () => {
    const needed = async (more: object) => (await estimateRunMemory(config(TINY_LLAMA, more)))!.needed;
    expect(await needed({ quantize: "8" })).toBeLessThan(await needed({}));
    expect(await needed({ microBatchTokens: 256 })).toBeLessThan(await needed({ microBatchTokens: 2048 }));
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
