import { defineSettings, integer, number } from "../../core/settings.js";
import { policySamplingSettings } from "../../generation/index.js";
import { microBatchTokens } from "../../models/index.js";
import { loopSettings, recordingSettings, trainerSettings } from "../../rl/train/index.js";

const { episodes, turns, seed, entropyFloor } = trainerSettings;

/**
 * Options of a `GatewayTrainer` that are plain values, in addition to those of the training loop.
 */
export const ownGatewaySettings = defineSettings({
  /** Training ends with the update in which this many sessions have ended. */
  episodes: { ...episodes, description: "Number of training sessions." },
  /** Training ends after this many turns. */
  turns: { ...turns, min: 1, description: "Number of training turns." },
  /** Sessions of the trainer's own agent that run at the same time. Default 16. */
  numSessions: integer({ default: 16, min: 1, description: "Number of sessions that run at the same time." }),
  /** Seconds without a call after which a session ends as truncated. Default 300. */
  sessionTimeoutSeconds: number({
    default: 300,
    above: 0,
    description: "Seconds without a call after which a session ends as truncated.",
  }),
  /** Sampling temperature of all completions. Default 1. */
  temperature: { ...policySamplingSettings.temperature, description: "Sampling temperature of all completions." },
  /** Maximum number of tokens per completion. Default 256. */
  maxCompletionLength: integer({ default: 256, min: 1, description: "Maximum number of tokens per completion." }),
  /** Seeds sampling and the algorithm. Default 0. */
  seed,
  /**
   * Warns when the policy's entropy falls below this many nats; 0 disables the warning. Default
   * 0.01.
   */
  entropyFloor,
  /** Token budget of a micro-batch. */
  microBatchTokens,
  /** Which sessions a tracker with `logRollout` receives. Default "none". */
  rollouts: { ...recordingSettings.rollouts, default: "none" },
});

/** Options of a `GatewayTrainer` that are plain values. */
export const gatewaySettings = { ...ownGatewaySettings, ...loopSettings };
