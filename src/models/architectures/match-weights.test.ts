import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import type { WeightEntry, WeightFile } from "../files/weight-file.js";
import { countElements } from "../../core/numbers.js";
import { matchWeights, parameterShapes, parseModelConfig } from "./index.js";

const sizes = { n_embd: 8, n_layer: 2, n_head: 2, n_positions: 16, vocab_size: 12 };
const gpt2 = parseModelConfig({ model_type: "gpt2", ...sizes }, "config.json");
const mask = [1, 1, 16, 16];

/** A weight file in memory; every tensor holds one value over and over. */
function fileOf(tensors: ReadonlyMap<string, readonly number[]>, values: Record<string, number> = {}): WeightFile {
  const entries = new Map<string, WeightEntry>();
  for (const [name, shape] of tensors) {
    const byteLength = 4 * countElements(shape);
    const place = { file: "m.safetensors", offset: entries.size * 1e6, byteLength, mappable: true };
    entries.set(name, { name, dtype: "F32", shape, ...place });
  }
  const read = (name: string) => new Float32Array(countElements(tensors.get(name)!)).fill(values[name] ?? 0);
  return {
    path: "m.safetensors",
    entries,
    readFloat32: async (name) => read(name),
    readChunks: async function* (name) {
      yield read(name);
    },
    readBytes: async (name) => new Uint8Array(read(name).buffer),
    close: async () => undefined,
  };
}

/** The tensors of a checkpoint of GPT-2 after a change. */
function stored(change: (tensors: Map<string, readonly number[]>) => void): Map<string, readonly number[]> {
  const tensors = parameterShapes(gpt2);
  change(tensors);
  return tensors;
}

async function mismatch(tensors: ReadonlyMap<string, readonly number[]>): Promise<string> {
  const error: unknown = await matchWeights(gpt2, fileOf(tensors)).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LlamaGymError);
  expect((error as LlamaGymError).code).toBe("WEIGHTS_MISMATCH");
  return (error as LlamaGymError).message;
}

describe("matchWeights", () => {
  it("finds names without the base model's prefix and ignores mask buffers", async () => {
    const bare = new Map([...parameterShapes(gpt2)].map(([name, shape]) => [name.replace("transformer.", ""), shape]));
    bare.set("h.0.attn.bias", mask).set("h.1.attn.bias", mask);
    const { weights, config } = await matchWeights(gpt2, fileOf(bare, { "h.1.mlp.c_fc.bias": 7 }));
    expect([...weights.entries.keys()]).toEqual([...parameterShapes(gpt2).keys()]);
    expect((await weights.readFloat32("transformer.h.1.mlp.c_fc.bias"))[3]).toBe(7);
    expect(weights.entries.get("transformer.wte.weight")?.name).toBe("transformer.wte.weight");
    expect(config).toBe(gpt2);
  });

  it("finds the output matrix of GPT-NeoX under its name in checkpoints, tied or not, and ignores buffers", async () => {
    const fields = {
      hidden_size: 8,
      num_hidden_layers: 1,
      num_attention_heads: 1,
      intermediate_size: 8,
      vocab_size: 12,
    };
    for (const isTied of [false, true]) {
      const config = parseModelConfig(
        { model_type: "gpt_neox", ...fields, tie_word_embeddings: isTied },
        "config.json",
      );
      const tensors = parameterShapes(config);
      tensors.delete("lm_head.weight");
      tensors.set("embed_out.weight", [12, 8]);
      const prefix = "gpt_neox.layers.0.attention";
      tensors.set(`${prefix}.bias`, [1, 1, 16, 16]).set(`${prefix}.masked_bias`, []);
      tensors.set(`${prefix}.rotary_emb.inv_freq`, [1]);
      const { weights, config: matched } = await matchWeights(config, fileOf(tensors, { "embed_out.weight": 3 }));
      expect(matched.names.head).toBe("lm_head.weight");
      expect((await weights.readFloat32("lm_head.weight"))[0]).toBe(3);
      expect(weights.entries.size).toBe(parameterShapes(matched).size);
    }
  });

  it("names all missing, unexpected and wrongly shaped tensors in one error", async () => {
    const message = await mismatch(
      stored((tensors) => {
        tensors.delete("transformer.h.1.ln_2.bias");
        tensors.set("transformer.h.2.ln_1.weight", [8]);
        tensors.set("transformer.wpe.weight", [32, 8]);
      }),
    );
    expect(message).toContain("missing: transformer.h.1.ln_2.bias [8]");
    expect(message).toContain("unexpected: transformer.h.2.ln_1.weight");
    expect(message).toContain("of another shape: transformer.wpe.weight is [32, 8], expected [16, 8]");
    expect(message).toContain("m.safetensors");
  });

  it("keeps the error readable when nothing fits", async () => {
    const message = await mismatch(new Map(Array.from({ length: 500 }, (_, i) => [`tensor.${i}`, [1]])));
    expect(message.length).toBeLessThan(1000);
    expect(message).toContain("and 494 more");
  });

  it("ties a stored output matrix only where it equals the embedding", async () => {
    const both = stored((tensors) => tensors.set("lm_head.weight", [12, 8]));
    const tied = await matchWeights(gpt2, fileOf(both));
    expect(tied.config.names.head).toBe("transformer.wte.weight");
    expect(tied.weights.entries.has("lm_head.weight")).toBe(false);
    const untied = await matchWeights(gpt2, fileOf(both, { "lm_head.weight": 1 }));
    expect(untied.config.names.head).toBe("lm_head.weight");
    expect((await untied.weights.readFloat32("lm_head.weight"))[0]).toBe(1);
  });

  it("uses the output matrix for a tied embedding that is not stored", async () => {
    const only = stored(
      (tensors) => tensors.delete("transformer.wte.weight") && tensors.set("lm_head.weight", [12, 8]),
    );
    const { weights } = await matchWeights(gpt2, fileOf(only, { "lm_head.weight": 2 }));
    expect((await weights.readFloat32("transformer.wte.weight"))[0]).toBe(2);
  });
});
