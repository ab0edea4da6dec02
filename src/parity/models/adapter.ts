import { join } from "node:path";
import { readJson, SafetensorsFile } from "../../files/index.js";
import { withAdapterValues } from "../../models/adapters.js";
import type { CausalLM } from "../../models/causal-lm.js";
import { LORA_DEFAULTS, type LoraConfig } from "../../models/lora.js";

const PREFIX = "base_model.model.";

/** The model with the adapter of a folder that PEFT wrote. */
export async function loadAdapter(model: CausalLM, folder: string): Promise<CausalLM> {
  const json = await readJson(join(folder, "adapter_config.json"));
  const file = await SafetensorsFile.open(join(folder, "adapter_model.safetensors"));
  const values = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const [name, { shape }] of file.entries) {
    values.set(name.slice(PREFIX.length), { shape, data: await file.readFloat32(name) });
  }
  await file.close();
  const config: LoraConfig = {
    ...LORA_DEFAULTS,
    r: json.r as number,
    loraAlpha: json.lora_alpha as number,
    targetModules: json.target_modules as string[],
    useRslora: json.use_rslora as boolean,
    rankPattern: json.rank_pattern as Record<string, number>,
    alphaPattern: json.alpha_pattern as Record<string, number>,
  };
  return withAdapterValues(model, config, values);
}
