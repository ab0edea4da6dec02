import { describe, expect, it } from "vitest";
import { fileURLToPath } from "node:url";
import { readFileSync } from "node:fs";
import { parseModelConfig } from "../architectures/index.js";
import type { JsonObject } from "../../core/json.js";
import { LORA_DEFAULTS, type LoraConfig } from "../files/index.js";
import { selectLoraModules } from "./select-lora-modules.js";

const path = (name: string) =>
  fileURLToPath(new URL(`../../../test/fixtures/models/${name}/config.json`, import.meta.url));
const configOf = (name: string) =>
  parseModelConfig(JSON.parse(readFileSync(path(name), "utf8")) as JsonObject, path(name));
const select = (lora: Partial<LoraConfig>, name = "llama") => [
  ...selectLoraModules(configOf(name), { ...LORA_DEFAULTS, ...lora }).keys(),
];
const layersOf = (modules: readonly string[]) => new Set(modules.map((name) => /\.(\d+)\./u.exec(name)?.[1]));

describe("selectLoraModules", () => {
  it("limits targets to layers, as PEFT does", () => {
    expect(layersOf(select({}))).toEqual(new Set(["0", "1"]));
    expect(layersOf(select({ layersToTransform: [1] }))).toEqual(new Set(["1"]));
    expect(layersOf(select({ layersToTransform: 1, layersPattern: "layers" }))).toEqual(new Set(["1"]));
    expect(layersOf(select({ layersToTransform: [0], layersPattern: ["h", "layers"] }))).toEqual(new Set(["0"]));
    expect(select({ targetModules: ["c_attn"], layersToTransform: [0], layersPattern: "h" }, "gpt2")).toEqual([
      "transformer.h.0.attn.c_attn",
    ]);
  });

  it("takes modules with their full path from any layer, and none outside the layers by the end of their path", () => {
    const targetModules = ["model.layers.0.mlp.up_proj", "down_proj", "lm_head"];
    expect(select({ targetModules, layersToTransform: [1] })).toEqual([
      "model.layers.0.mlp.up_proj",
      "model.layers.1.mlp.down_proj",
      "lm_head",
    ]);
    expect(select({ targetModules: ["embed_tokens", "q_proj"], layersToTransform: [1] })).toEqual([
      "model.layers.1.self_attn.q_proj",
    ]);
  });

  it("leaves out excluded modules: by path, by its end, or by a pattern", () => {
    const targetModules = ["q_proj", "v_proj"];
    const excludeModules = ["v_proj", "model.layers.0.self_attn.q_proj"];
    const wanted = ["model.layers.1.self_attn.q_proj"];
    expect(select({ targetModules, excludeModules })).toEqual(wanted);
    expect(select({ targetModules, excludeModules: String.raw`.*v_proj|model\.layers\.0\..*` })).toEqual(wanted);
  });

  it.each([
    [{ layersToTransform: [2] }, 'leave none of the 14 modules that `targetModules` "all-linear" matches in 2 layers'],
    [{ layersToTransform: [1], layersPattern: "blocks" }, "leave none of the 14 modules"],
    [{ layersToTransform: [0.5] }, "`layersToTransform` must be integers >= 0, got 0.5."],
    [{ layersPattern: "layers" }, "`layersPattern` names the list of layers for `layersToTransform`."],
    [{ layersToTransform: [1], targetModules: ".*q_proj" }, "requires `targetModules` to be a list or all-linear"],
    [{ excludeModules: "(" }, "`excludeModules` contains an invalid regular expression"],
  ])("rejects %j", (lora, message) => {
    expect(() => select(lora)).toThrowError(message);
  });
});
