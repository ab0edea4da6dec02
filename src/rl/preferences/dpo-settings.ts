import { invalidArgument } from "../../core/errors.js";
import { choice, defineSettings, number, resolveSettings, type Settings } from "../../core/settings.js";
import { exampleSettings } from "../algorithms/shared/example-settings.js";

const TRL = "TRL 1.16's DPOConfig";

/** Losses of TRL's DPOTrainer that are sums over pairs. */
const DPO_LOSS_TYPES = [
  "sigmoid",
  "hinge",
  "ipo",
  "exo_pair",
  "nca_pair",
  "robust",
  "bco_pair",
  "sppo_hard",
  "apo_zero",
  "apo_down",
  "discopop",
  "sft",
  "sigmoid_norm",
] as const;

/**
 * Losses that are functions of the difference between the scores of a pair, in which a divergence's
 * constant cancels.
 */
const DIFFERENCE_LOSSES = ["sigmoid", "sigmoid_norm", "hinge", "ipo", "exo_pair", "robust", "discopop", "sft"];

/** Settings of direct preference optimization, with the source of each default. */
export const dpoSettings = defineSettings({
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
    description: "Strength of the KL constraint to the reference policy; for ipo the regularization τ.",
    source: TRL,
  }),
  lossType: choice({
    common: true,
    default: "sigmoid",
    choices: DPO_LOSS_TYPES,
    description: "Loss of a pair. TRL's aot and aot_unpaired, which sort all pairs of an update, are not supported.",
    source: TRL,
  }),
  labelSmoothing: number({
    default: 0,
    min: 0,
    max: 0.5,
    description: "Probability that a label is wrong, for robust (below 0.5) and exo_pair (above 0, such as 0.001).",
    source: TRL,
  }),
  fDivergenceType: choice({
    default: "reverse_kl",
    choices: ["reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"],
    description: "Divergence of the constraint, for losses of the difference between chosen and rejected.",
    source: TRL,
  }),
  fAlphaDivergenceCoef: number({ default: 0.5, description: "Coefficient α of alpha_divergence.", source: TRL }),
  ldAlpha: number({
    min: 0,
    max: 1,
    description: "Weight of the tokens beyond the length of the shorter completion (LD-DPO). Default: off.",
    source: TRL,
  }),
  discopopTau: number({ default: 0.05, above: 0, description: "Temperature of the discopop loss.", source: TRL }),
  ...exampleSettings,
  maxLength: { ...exampleSettings.maxLength, default: 1024, description: "Maximum number of tokens per sequence." },
});

/** Resolved settings of direct preference optimization. */
export type DpoConfig = Settings<typeof dpoSettings>;

/** Settings of direct preference optimization; defaults fill in the rest. */
export type DpoOptions = Partial<DpoConfig>;

/**
 * Resolves the settings. @throws INVALID_ARGUMENT for unknown settings, values out of range, and
 * settings that exclude each other.
 */
export function resolveDpoConfig(options: DpoOptions = {}): DpoConfig {
  const config = resolveSettings("DPO", dpoSettings, options);
  const { lossType, labelSmoothing, fDivergenceType } = config;
  if (lossType === "exo_pair" && labelSmoothing === 0)
    throw invalidArgument("`labelSmoothing` must be above 0 with `lossType` exo_pair, for example 0.001.");
  if (lossType === "robust" && labelSmoothing >= 0.5)
    throw invalidArgument(`\`labelSmoothing\` must be below 0.5 with \`lossType\` robust, got ${labelSmoothing}.`);
  if (fDivergenceType !== "reverse_kl" && !DIFFERENCE_LOSSES.includes(lossType))
    throw invalidArgument(
      `\`fDivergenceType\` ${fDivergenceType} is not defined for \`lossType\` ${lossType}. Use reverse_kl, or one of ${DIFFERENCE_LOSSES.join(", ")}.`,
    );
  return config;
}
