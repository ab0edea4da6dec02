import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPretrained } from "./auto.js";
import { CausalLM } from "./causal-lm.js";
import { getPeftModel, type PeftOptions } from "./adapters/get-peft-model.js";
import { saveModel } from "./save-model.js";

const options = { device: "cpu", threads: 1 } as const;
const source = fileURLToPath(new URL("../../models/llamagym-1m", import.meta.url));
const deep = `{"r": ${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
const catastrophic = "(([a-z._0-9])*)*Z";

let folder: string;
let model: string;
let adapter: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "llamagym-hostile-"));
  model = join(folder, "model");
  adapter = join(folder, "adapter");
});
afterAll(() => rm(folder, { recursive: true }));

beforeEach(async () => {
  await cp(source, model, { recursive: true });
  const base = await CausalLM.open(source, options);
  await saveModel(await getPeftModel(base, { r: 8, valueHead: { kind: "linear", dropout: 0 } }), adapter, {
    baseModelName: source,
  });
  await base.close();
  // The files are written by others.
  await rm(join(adapter, "SHA256SUMS"));
});

/** Replaces a file's text, or some of its fields. */
async function change(path: string, content: string | Record<string, unknown>): Promise<void> {
  const fields = async () => JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  await writeFile(path, typeof content === "string" ? content : JSON.stringify({ ...(await fields()), ...content }));
}

async function open(path: string): Promise<void> {
  const { model: opened } = await openPretrained(path, options);
  try {
    expect(opened.eosTokenIds.length).toBeLessThanOrEqual(1000);
  } finally {
    await opened.close();
  }
}

describe("a model folder", () => {
  it.each<[string, string | Record<string, unknown>, string]>([
    ["config.json", deep, "FILE_CORRUPT"],
    ["config.json", { vocab_size: 2 ** 31 - 1 }, "WEIGHTS_MISMATCH"],
    ["config.json", { hidden_size: 2 ** 31 }, "FILE_CORRUPT"],
    ["config.json", { num_hidden_layers: 4096 }, "WEIGHTS_MISMATCH"],
    ["config.json", { num_hidden_layers: 4097 }, "FILE_CORRUPT"],
    ["config.json", { rms_norm_eps: 1e300 }, "FILE_CORRUPT"],
    ["config.json", { rope_theta: 1e-300 }, "FILE_CORRUPT"],
    ["generation_config.json", deep, "FILE_CORRUPT"],
    ["generation_config.json", { eos_token_id: Array.from({ length: 1001 }, (_, i) => i) }, "FILE_CORRUPT"],
  ])("with a hostile %s is one error: %#", async (file, content, code) => {
    await change(join(model, file), content);
    await expect(open(model)).rejects.toMatchObject({ name: "LlamaGymError", code });
  });

  it("with end tokens of other types opens", async () => {
    await change(join(model, "generation_config.json"), { eos_token_id: ["a", [[]], -1, 1e300, 4] });
    await expect(open(model)).resolves.toBeUndefined();
  });
});

describe("an adapter folder", () => {
  it.each<[string, string | Record<string, unknown>, string]>([
    ["adapter_config.json", deep, "FILE_CORRUPT"],
    ["adapter_config.json", { r: 2 ** 31 }, "FILE_CORRUPT"],
    ["adapter_config.json", { r: 2 ** 31 - 1 }, "INVALID_ARGUMENT"],
    ["adapter_config.json", { rank_pattern: { q_proj: 2 ** 31 } }, "INVALID_ARGUMENT"],
    ["adapter_config.json", { rank_pattern: { q_proj: 1.5 } }, "INVALID_ARGUMENT"],
    ["adapter_config.json", { rank_pattern: { "(": 4 } }, "INVALID_ARGUMENT"],
    ["adapter_config.json", { rank_pattern: { [catastrophic]: 8 } }, "MODEL_UNSUPPORTED"],
    ["adapter_config.json", { alpha_pattern: { ".*.*.*.*.*.*.*.*.*Z": 8 } }, "MODEL_UNSUPPORTED"],
    ["adapter_config.json", { lora_alpha: 1e308 }, "FILE_CORRUPT"],
    ["adapter_config.json", { target_modules: Array.from({ length: 200_000 }, (_, i) => `m${i}`) }, "INVALID_ARGUMENT"],
    ["value_head.json", { kind: "deep" }, "MODEL_UNSUPPORTED"],
    ["value_head.json", { dropout: 7 }, "FILE_CORRUPT"],
    ["value_head.json", "[]", "FILE_CORRUPT"],
  ])("with a hostile %s is one error: %#", async (file, content, code) => {
    await change(join(adapter, file), content);
    await expect(open(adapter)).rejects.toMatchObject({ name: "LlamaGymError", code });
  });

  it("that names itself as its base model is one error", async () => {
    await change(join(adapter, "adapter_config.json"), { base_model_name_or_path: adapter });
    await expect(open(adapter)).rejects.toMatchObject({ code: "MODEL_UNSUPPORTED" });
  });

  it("takes its modules from the weights instead of matching a pattern", async () => {
    await change(join(adapter, "adapter_config.json"), { target_modules: catastrophic });
    await expect(open(adapter)).resolves.toBeUndefined();
  });
});

describe("getPeftModel", () => {
  it.each<PeftOptions>([
    { r: 2 ** 31 },
    { r: 2 ** 16 + 1 },
    { r: Number.NaN },
    { rankPattern: { q_proj: 0 } },
    { targetModules: "(" },
    { alphaPattern: { "(": 1 } },
    { alphaPattern: { q_proj: Infinity } },
  ])("rejects %j", async (config) => {
    const base = await CausalLM.open(source, options);
    await expect(getPeftModel(base, config)).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await base.close();
  });
});
