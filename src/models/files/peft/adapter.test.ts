import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SafetensorsFile, writeSafetensors } from "../safetensors/index.js";
import { isAdapterFolder, readAdapter, writeAdapter, type AdapterTensor } from "./adapter.js";

const fixture = new URL("../../../../test/fixtures/files/adapter", import.meta.url).pathname;

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "adapter-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function json(path: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
}

const queries = "model.layers.0.self_attn.q_proj";
const matrix = (rows: number, columns: number): AdapterTensor => ({
  shape: [rows, columns],
  data: new Float32Array(rows * columns).fill(0.5),
});
const pair = new Map([
  [`${queries}.lora_A.weight`, matrix(2, 16)],
  [`${queries}.lora_B.weight`, matrix(8, 2)],
]);

describe("an adapter that PEFT saved", () => {
  it("is read with its settings and tensors", async () => {
    const { config, tensors } = await readAdapter(fixture);
    expect(config).toEqual({
      r: 2,
      loraAlpha: 6,
      loraDropout: 0.1,
      targetModules: expect.arrayContaining(["q_proj", "o_proj"]) as string[],
      useRslora: true,
      rankPattern: { o_proj: 4 },
      alphaPattern: { "layers.0.self_attn.o_proj": 3 },
      layersToTransform: [],
      layersPattern: [],
      excludeModules: [],
      fanInFanOut: false,
      modulesToSave: ["lm_head"],
      useDora: false,
      bias: "none",
      loraBias: false,
      trainableTokenIndices: [],
      ensureWeightTying: false,
      baseModelNameOrPath: null,
      revision: null,
      taskType: "CAUSAL_LM",
    });
    expect(Object.fromEntries([...tensors].map(([name, { shape }]) => [name, shape]))).toEqual({
      "lm_head.weight": [20, 16],
      [`${queries}.lora_A.weight`]: [2, 16],
      [`${queries}.lora_B.weight`]: [32, 2],
      "model.layers.0.self_attn.o_proj.lora_A.weight": [4, 32],
      "model.layers.0.self_attn.o_proj.lora_B.weight": [16, 4],
    });
  });

  it("is written again with the same values and bytes, and only with fields of PEFT 0.11", async () => {
    const { config, tensors } = await readAdapter(fixture);
    await writeAdapter(folder, config, tensors);
    const original = await json(join(fixture, "adapter_config.json"));
    const fields =
      "alpha_pattern base_model_name_or_path bias fan_in_fan_out inference_mode init_lora_weights lora_alpha lora_dropout " +
      "modules_to_save peft_type r rank_pattern revision target_modules task_type use_rslora";
    const expected = fields.split(" ").map((field) => [field, original[field]]);
    expect(await json(join(folder, "adapter_config.json"))).toEqual({
      ...Object.fromEntries(expected),
      init_lora_weights: true,
    });
    const [ours, theirs] = await Promise.all(
      [folder, fixture].map((place) => SafetensorsFile.open(join(place, "adapter_model.safetensors"))),
    );
    expect([...ours.entries.keys()].sort()).toEqual([...theirs.entries.keys()].sort());
    for (const name of theirs.entries.keys()) expect(await ours.readBytes(name)).toEqual(await theirs.readBytes(name));
    await ours.close();
    await theirs.close();
    expect(await isAdapterFolder(folder)).toBe(true);
  });
});

describe("writeAdapter", () => {
  it("writes all-linear as the names of the modules", async () => {
    await writeAdapter(folder, { r: 2, baseModelNameOrPath: "someone/model" }, pair);
    expect(await json(join(folder, "adapter_config.json"))).toMatchObject({
      target_modules: ["q_proj"],
      base_model_name_or_path: "someone/model",
      peft_type: "LORA",
      lora_alpha: 8,
      modules_to_save: null,
    });
  });

  it("writes features beyond plain LoRA as PEFT does, and reads them back", async () => {
    const config = {
      r: 2,
      useDora: true,
      bias: "lora_only",
      modulesToSave: ["lm_head"],
      trainableTokenIndices: { embed_tokens: [3, 5] },
      ensureWeightTying: true,
    } as const;
    const tensors = new Map(pair)
      .set(`${queries}.lora_magnitude_vector`, { shape: [8], data: new Float32Array(8).fill(2) })
      .set(`${queries}.bias`, { shape: [8], data: new Float32Array(8).fill(3) })
      .set("lm_head.weight", matrix(6, 16));
    await writeAdapter(folder, config, tensors);
    expect(await json(join(folder, "adapter_config.json"))).toMatchObject({
      use_dora: true,
      bias: "lora_only",
      modules_to_save: ["lm_head"],
      trainable_token_indices: { embed_tokens: [3, 5] },
      ensure_weight_tying: true,
    });
    const file = await SafetensorsFile.open(join(folder, "adapter_model.safetensors"));
    expect([...file.entries.keys()]).toContain(`base_model.model.${queries}.base_layer.bias`);
    await file.close();
    const adapter = await readAdapter(folder);
    expect(adapter.config).toMatchObject(config);
    expect(adapter.tensors).toEqual(tensors);
    expect(adapter.baseWeights.size).toBe(0);
  });

  it("rejects tensors that do not form an adapter", async () => {
    await expect(writeAdapter(folder, {}, new Map())).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    const half = new Map([...pair].slice(0, 1));
    await expect(writeAdapter(folder, {}, half)).rejects.toThrowError(/without its counterpart/u);
    const unfit = new Map(pair).set(`${queries}.lora_B.weight`, matrix(8, 3));
    await expect(writeAdapter(folder, {}, unfit)).rejects.toThrowError(/ranks of A and B .* are 2 and 3/u);
    expect(await isAdapterFolder(folder)).toBe(false);
  });
});

describe("readAdapter", () => {
  it.each([
    ["use_qalora", true],
    ["peft_type", "IA3"],
    ["target_parameters", ["mlp.gate_proj.weight"]],
    ["layer_replication", [[0, 2]]],
    ["init_lora_weights", "pissa"],
    ["a_field_of_next_year", { on: true }],
  ])("names an unsupported field: %s", async (field, value) => {
    await cp(fixture, folder, { recursive: true });
    const path = join(folder, "adapter_config.json");
    await writeFile(path, JSON.stringify({ ...(await json(path)), [field]: value }));
    await expect(readAdapter(folder)).rejects.toMatchObject({
      code: "MODEL_UNSUPPORTED",
      message: expect.stringContaining(`${field} = ${JSON.stringify(value)}`) as string,
    });
  });

  it.each([
    ["r", 0],
    ["r", "4"],
    ["r", 2_147_483_648],
    ["lora_alpha", "16"],
    ["lora_dropout", 1],
    ["target_modules", []],
    ["rank_pattern", { a: "b" }],
    ["modules_to_save", "lm_head"],
    ["layers_to_transform", [-1]],
    ["exclude_modules", 3],
  ])("names a field of the wrong type: %s = %j", async (field, value) => {
    await cp(fixture, folder, { recursive: true });
    const path = join(folder, "adapter_config.json");
    await writeFile(path, JSON.stringify({ ...(await json(path)), [field]: value }));
    await expect(readAdapter(folder)).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringContaining(`"${field}"`) as string,
    });
  });

  it("keeps the fields that limit the adapted modules, and writes them again", async () => {
    const limits = { layers_to_transform: [0], layers_pattern: "layers", exclude_modules: ["k_proj"] };
    await writeAdapter(folder, { r: 2, targetModules: ["q_proj"] }, pair);
    const path = join(folder, "adapter_config.json");
    await writeFile(path, JSON.stringify({ ...(await json(path)), ...limits }));
    const { config, tensors } = await readAdapter(folder);
    expect(config).toMatchObject({ layersToTransform: [0], layersPattern: "layers", excludeModules: ["k_proj"] });
    await writeAdapter(folder, config, tensors);
    expect(await json(path)).toMatchObject({ ...limits, target_modules: ["q_proj"] });
  });

  it.each([
    ["target_modules", ".*q_proj"],
    ["exclude_modules", ".*k_proj"],
    ["layers_pattern", ["l.*s"]],
  ])("takes the modules from the weights where the config has a pattern: %s", async (field, value) => {
    await writeAdapter(folder, { r: 2, targetModules: ["q_proj"] }, pair);
    const path = join(folder, "adapter_config.json");
    await writeFile(path, JSON.stringify({ ...(await json(path)), layers_to_transform: 0, [field]: value }));
    const { config } = await readAdapter(folder);
    expect(config).toMatchObject({ targetModules: [queries], layersToTransform: [], layersPattern: [] });
    expect(config.excludeModules).toEqual([]);
  });

  it("rejects other tensors, pickles and a folder without an adapter", async () => {
    await expect(readAdapter(folder)).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await writeAdapter(folder, { r: 2 }, pair);
    const weights = join(folder, "adapter_model.safetensors");
    const extra = { shape: [2], data: new Float32Array(2) };
    await writeSafetensors(weights, [{ name: "base_model.model.wte.lora_embedding_A", ...extra }]);
    await expect(readAdapter(folder)).rejects.toThrowError(/without its counterpart/u);
    await writeSafetensors(weights, [{ name: "wte.lora_A.weight", ...extra }]);
    await expect(readAdapter(folder)).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    await rm(weights);
    await writeFile(join(folder, "adapter_model.bin"), "");
    await expect(readAdapter(folder)).rejects.toMatchObject({ code: "FORMAT_UNSUPPORTED" });
  });
});
