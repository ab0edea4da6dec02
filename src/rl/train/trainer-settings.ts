import { defineSettings, integer, number } from "../../core/settings.js";
import { ENTROPY_FLOOR } from "./training-monitor.js";

/** More evaluation episodes would fill the memory with their turns; the standard error of a million is small enough. */
export const MAX_EVAL_EPISODES = 1_000_000;

/** Options of a `Trainer` that are numbers. */
export const trainerSettings = defineSettings({
  episodes: integer({ min: 1, description: "Number of training episodes." }),
  turns: integer({ min: 0, description: "Number of training turns. 0 trains on demonstrations only." }),
  numEnvs: integer({ default: 16, min: 1, description: "Number of environments stepped in parallel." }),
  maxStaleness: integer({
    default: 1,
    min: 0,
    max: 4,
    description: "Number of rollouts that workers collect while earlier ones are trained. 0 waits for each update.",
    source: "AReaL",
  }),
  envsPerJob: integer({
    default: 8,
    min: 1,
    description: "Number of environments that a worker steps together. numEnvs / envsPerJob workers are busy at once.",
  }),
  seed: integer({ default: 0, min: 0, description: "Random seed; the same seed gives the same run." }),
  saveSteps: integer({ default: 10, min: 1, description: "Number of updates between checkpoints." }),
  entropyFloor: number({
    default: ENTROPY_FLOOR,
    min: 0,
    description: "Warn when the entropy falls below this, in nats. 0 disables it.",
  }),
  completionLogSteps: integer({ default: 10, min: 1, description: "Number of updates between logged completions." }),
  numLoggedCompletions: integer({
    default: 3,
    min: 0,
    description: "Number of completions logged at a time.",
    source: "TRL 1.16",
  }),
});
