import { defineSettings, integer, number } from "../../core/settings.js";
import { TEMPERATURE_LIMITS } from "../../generation/generation-options.js";
import { trainerSettings } from "../../rl/train/trainer-settings.js";

const { episodes, turns, seed, saveSteps, entropyFloor } = trainerSettings;

/** Options of a `GatewayTrainer` that are numbers. */
export const gatewaySettings = defineSettings({
  episodes: { ...episodes, description: "Number of training sessions." },
  turns: { ...turns, min: 1, description: "Number of training turns." },
  numSessions: integer({ default: 16, min: 1, description: "Number of sessions that run at the same time." }),
  sessionTimeoutSeconds: number({
    default: 300,
    above: 0,
    description: "Seconds without a call after which a session ends as truncated.",
  }),
  temperature: number({ ...TEMPERATURE_LIMITS, default: 1, description: "Sampling temperature of all completions." }),
  maxCompletionLength: integer({ default: 256, min: 1, description: "Maximum number of tokens per completion." }),
  seed,
  saveSteps,
  entropyFloor,
});
