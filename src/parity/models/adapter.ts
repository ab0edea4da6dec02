import { readAdapter } from "../../files/peft/index.js";
import { withAdapterValues } from "../../models/adapters.js";
import type { CausalLM } from "../../models/causal-lm.js";

/** The model with the adapter of a folder that PEFT wrote. */
export async function loadAdapter(model: CausalLM, folder: string): Promise<CausalLM> {
  const { config, tensors } = await readAdapter(folder);
  return withAdapterValues(model, config, tensors);
}
