import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CausalLM } from "./causal-lm.js";
import { loadAdapter } from "./save-model.js";

const fixture = (path: string) => fileURLToPath(new URL(`../../test/fixtures/${path}`, import.meta.url));

let model: CausalLM;
beforeAll(async () => {
  model = await CausalLM.open(fixture("models/llama"), { device: "cpu", threads: 1 });
});
afterAll(() => model.close());

/** Adapters that pip's PEFT saved. */
describe("an adapter of PEFT with more than plain LoRA", () => {
  it.each([
    ["dora", /adapter_config\.json has use_dora = true, which is not supported.*merge_and_unload/],
    ["bias_lora_only", /has bias = "lora_only", which is not supported/],
    ["bias_all", /has bias = "all", which is not supported/],
    ["lora_bias", /has lora_bias = true, which is not supported/],
    ["target_parameters", /has target_parameters = \["mlp\.gate_proj\.weight"\], which is not supported/],
    ["trainable_tokens", /has trainable_token_indices = \[3,5\], which is not supported/],
    ["modules_to_save", /modules_to_save \["embed_tokens","lm_head"\] .* is not supported.*merge_and_unload/],
    ["modules_to_save_tied", /modules_to_save \["embed_tokens"\] .* is not supported/],
    [
      "trained_embedding",
      /model\.embed_tokens\.weight, which differs from the base model's: it was resized or trained/,
    ],
    [
      "resized_embedding",
      /(lm_head|model\.embed_tokens)\.weight, which is \[27, 16\], but the base model's is \[24, 16\]/,
    ],
    [
      "adapted_resized_embedding",
      /model\.embed_tokens\.weight, which is \[27, 16\], but the base model's is \[24, 16\]/,
    ],
  ])("is refused by name: %s", async (name, message) => {
    await expect(loadAdapter(model, fixture(`peft/${name}`))).rejects.toMatchObject({
      code: "MODEL_UNSUPPORTED",
      message: expect.stringMatching(message) as string,
    });
  });

  it.each(["saved_embeddings", "adapted_embedding"])(
    "is opened if its weights of the base model are unchanged: %s",
    async (name) => {
      const { modules } = (await loadAdapter(model, fixture(`peft/${name}`))).adapter!;
      expect([...modules.keys()].includes("model.embed_tokens")).toBe(name === "adapted_embedding");
    },
  );
});
