import { invalidArgument } from "../../core/errors.js";
import { choice, defineSettings, number, resolveSettings, type Settings } from "../../core/settings.js";
import { exampleSettings } from "../algorithms/shared/example-settings.js";

const TRL = "TRL 1.16's KTOConfig";

/** Settings of Kahneman-Tversky optimization, with the source of each default. */
export const ktoSettings = defineSettings({
  learningRate: number({
    common: true,
    default: 1e-6,
    min: 0,
    description: "Learning rate of AdamW. Adapters need about ten times the rate of all weights.",
    source: TRL,
  }),
  beta: number({
    common: true,
    default: 0.1,
    above: 0,
    description: "Strength of the KL constraint to the reference policy.",
    source: TRL,
  }),
  lossType: choice({
    common: true,
    default: "kto",
    choices: ["kto", "apo_zero_unpaired"],
    description: "Loss of a completion. kto measures the KL divergence on mismatched prompts and completions.",
    source: TRL,
  }),
  desirableWeight: number({ default: 1, min: 0, description: "Weight of desirable completions.", source: TRL }),
  undesirableWeight: number({ default: 1, min: 0, description: "Weight of undesirable completions.", source: TRL }),
  ...exampleSettings,
  maxLength: { ...exampleSettings.maxLength, default: 1024, description: "Maximum number of tokens per sequence." },
});

/** Resolved settings of Kahneman-Tversky optimization. */
export type KtoConfig = Settings<typeof ktoSettings>;

/** Settings of Kahneman-Tversky optimization; defaults fill in the rest. */
export type KtoOptions = Partial<KtoConfig>;

/**
 * Resolves the settings. @throws INVALID_ARGUMENT for unknown settings, values out of range, and
 * batches of one completion.
 */
export function resolveKtoConfig(options: KtoOptions = {}): KtoConfig {
  const config = resolveSettings("KTO", ktoSettings, options);
  if (config.lossType === "kto" && config.maxBatchTokens === undefined && config.batchSize < 2)
    throw invalidArgument(
      `\`batchSize\` must be at least 2 with \`lossType\` kto, got ${config.batchSize}: the KL divergence is measured on prompts with completions of other examples.`,
    );
  return config;
}
