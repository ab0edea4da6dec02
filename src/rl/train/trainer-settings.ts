import { invalidArgument } from "../../core/errors.js";
import { boolean, choice, defineSettings, integer, number, type Settings } from "../../core/settings.js";
import { ROLLOUT_MODES } from "./record-rollout.js";
import { ENTROPY_FLOOR } from "./training-monitor.js";

/** More evaluation episodes would fill the memory with their turns; the standard error of a million is small enough. */
export const MAX_EVAL_EPISODES = 1_000_000;

/** Episodes of an evaluation during training, unless set. */
export const DEFAULT_EVAL_EPISODES = 100;

/** Options of a `Trainer` that are numbers and switches. */
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
  evalSteps: integer({ min: 1, description: "Number of updates between greedy evaluations. Default: none." }),
  loadBestModelAtEnd: boolean({
    description: "End with the parameters of the best evaluation (evalSteps) instead of the last ones.",
    source: "Transformers",
  }),
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

/** @throws INVALID_ARGUMENT for evaluations without episodes, and for a best model without evaluations. */
export function checkEvaluationSettings({
  evalSteps,
  evalEpisodes,
  loadBestModelAtEnd = false,
}: {
  readonly evalSteps?: number;
  readonly evalEpisodes?: number;
  readonly loadBestModelAtEnd?: boolean;
}): void {
  if (evalSteps !== undefined && evalEpisodes === 0)
    throw invalidArgument("`evalSteps` needs episodes to evaluate: set `evalEpisodes`.");
  if (loadBestModelAtEnd && evalSteps === undefined)
    throw invalidArgument("`loadBestModelAtEnd` compares evaluations during training: set `evalSteps`.");
}

/** Settings of the recording in a run's folder. */
export const recordingSettings = defineSettings({
  rollouts: choice({
    default: "samples",
    choices: ROLLOUT_MODES,
    description:
      "Which episodes are recorded with their tokens for the dashboard (docs/rollouts.md): none, some of each update, or all.",
  }),
  maxRolloutMegabytes: integer({
    default: 100,
    min: 1,
    max: 100_000,
    description: "Size at which older recorded episodes are thinned out.",
  }),
});

/** Returns the bytes that a run's recording may have; undefined where nothing is recorded. */
export function maxRolloutBytes({
  rollouts,
  maxRolloutMegabytes,
}: Partial<Settings<typeof recordingSettings>>): number | undefined {
  if (rollouts === "none") return undefined;
  return (maxRolloutMegabytes ?? recordingSettings.maxRolloutMegabytes.default) * 1e6;
}
