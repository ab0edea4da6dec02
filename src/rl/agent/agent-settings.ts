import { choice, defineSettings, integer, number, text } from "../../core/settings.js";
import { policySamplingSettings } from "../../generation/index.js";
import { microBatchTokens } from "../../models/index.js";
import { rolloutSettings } from "../rollout/rollout-settings.js";

/** Options of an agent that are plain values, in addition to those of its rollouts. */
export const ownAgentSettings = defineSettings({
  /** Temperature after `eval()`. Default 0 (greedy). */
  evalTemperature: number({
    ...policySamplingSettings.temperature,
    allowsZero: true,
    default: 0,
    description: "Sampling temperature in evaluation. 0 is greedy.",
  }),
  /**
   * Token budget of a micro-batch; more need more memory. By default what fits into about 2 GB, at
   * most 2,048.
   */
  microBatchTokens,
  /** Seed of completions, minibatches and dropout. Default 0. */
  seed: integer({ default: 0, min: 0, description: "Random seed; the same seed gives the same run." }),
});

/** Options of an agent that are plain values. */
export const agentSettings = { ...rolloutSettings, ...ownAgentSettings };

/** Options of a TextAgent that are plain values, in addition to those of an agent. */
export const textAgentSettings = defineSettings({
  /**
   * "choices" constrains completions to those that the environment lists, if it does; "scored"
   * samples one of these by its score (by default its mean log-probability per token); "regex"
   * constrains them to `actionRegex`; "schema" to the JSON schema of its actions. Default "free".
   */
  actionMode: choice({
    default: "free",
    choices: ["free", "choices", "scored", "regex", "schema"],
    description:
      "How actions are generated: free text, text constrained to the environment's choices, choices sampled by their score, or text constrained to actionRegex or to the JSON schema of the environment's actions.",
  }),
  /** Regular expression that completions match as a whole, with actionMode "regex". */
  actionRegex: text({
    valueName: "expression",
    description: "Regular expression that completions match. A group named action captures the action.",
  }),
});
