import { boolean, defineSettings, number, resolveSettings, type Settings } from "../../../core/settings.js";
import { exampleSettings } from "../shared/example-settings.js";

const EDU = "LlamaGymEDU";

/** Settings of supervised fine-tuning, with the source of each default. */
export const sftSettings = defineSettings({
  learningRate: number({ common: true, default: 1e-4, min: 0, description: "Learning rate of AdamW.", source: EDU }),
  ...exampleSettings,
  assistantOnlyLoss: boolean({ default: true, description: "Compute the loss on completions only, not on prompts." }),
});

/** Resolved settings of supervised fine-tuning. */
export type SftConfig = Settings<typeof sftSettings>;
/** Settings of supervised fine-tuning; defaults fill in the rest. */
export type SftOptions = Partial<SftConfig>;

/** Resolves the settings. @throws INVALID_ARGUMENT for unknown settings and values out of range. */
export function resolveSftConfig(options: SftOptions = {}): SftConfig {
  return resolveSettings("SFT", sftSettings, options);
}
