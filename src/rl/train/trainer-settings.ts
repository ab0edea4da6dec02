import { invalidArgument } from "../../core/errors.js";
import { boolean, choice, defineSettings, integer, number, text, type Settings } from "../../core/settings.js";
import { parseOpponents } from "./parse-opponents.js";
import { ROLLOUT_MODES } from "./record-rollout.js";
import { ENTROPY_FLOOR } from "../algorithms/training-monitor.js";

/**
 * More evaluation episodes would fill the memory with their turns; the standard error of a million
 * is small enough.
 */
export const MAX_EVAL_EPISODES = 1_000_000;

/** Settings of self-play in games; docs/self-play.md. */
export const selfPlaySettings = defineSettings(
  {
    /**
     * Trains on the games of the policy against itself and a league. Default false: against the
     * environment's opponent.
     */
    selfPlay: boolean({
      common: true,
      description: "Train on games of the policy against itself and a league of opponents (docs/self-play.md).",
    }),
    /** Weights of the opponents. Default "self:0.7,past:0.3". */
    opponents: text({
      default: "self:0.7,past:0.3",
      valueName: "weights",
      description:
        "Weights of the opponents in self-play: self, past (earlier versions), random, minimax, and paths of other runs.",
    }),
    /** Updates between snapshots of the policy for the league. Default 20. */
    snapshotSteps: integer({
      default: 20,
      min: 1,
      description: "Number of updates between snapshots of the policy, the past opponents.",
    }),
    /** Snapshots in the league: the first one and the latest ones. Default 8. */
    leagueSize: integer({
      default: 8,
      min: 1,
      max: 100,
      description: "Number of snapshots in the league: the first one and the latest ones.",
    }),
    /**
     * "hardest" prefers snapshots that the policy seldom beats, by (1 - win rate)^2. Default
     * "uniform".
     */
    pastSelection: choice({
      default: "uniform",
      choices: ["uniform", "hardest"],
      description:
        "How the snapshot of an update is drawn: all alike, or those that the policy seldom beats more often.",
    }),
  },
  { group: "Self-play", scope: "rollouts" },
);

/** Settings of exact evaluation during training. */
export const exactEvaluationSettings = defineSettings(
  {
    /** Computes exact values of the policy in evaluations with `evalSteps`. Default false. */
    evalExact: boolean({
      description: "Compute exact values of the policy in a small game in evaluations with evalSteps.",
    }),
  },
  { group: "Self-play", scope: "evaluation" },
);

/** Settings of the training loop. */
export const loopSettings = defineSettings(
  {
    /** Updates between checkpoints. Default 10. */
    saveSteps: integer({
      default: 10,
      min: 1,
      description:
        "Number of updates between checkpoints. A minute after the last one, an update is saved in any case.",
    }),
    /** Updates between logged completions. Default 10. */
    completionLogSteps: integer({ default: 10, min: 1, description: "Number of updates between logged completions." }),
    /** Completions logged at a time. Default 3. */
    numLoggedCompletions: integer({
      default: 3,
      min: 0,
      description: "Number of completions logged at a time.",
      source: "TRL 1.16",
    }),
  },
  { group: "Logging and checkpoints", scope: "run", changeable: "live" },
);

/** Settings with which evaluations end a run, of all trainers with evaluations. */
export const earlyStoppingSettings = defineSettings(
  {
    /** Evaluations in a row without a better one that end training. Default: none. */
    earlyStoppingPatience: integer({
      min: 1,
      changeable: "resume",
      description: "End the run after this many evaluations (evalSteps) in a row without a better one.",
      source: "Transformers",
    }),
    /** By how much an evaluation must be better than the best so far. Default 0. */
    earlyStoppingThreshold: number({
      default: 0,
      min: 0,
      changeable: "resume",
      description: "By how much an evaluation must be better to count for earlyStoppingPatience.",
      source: "Transformers",
    }),
  },
  { group: "Run", scope: "evaluation" },
);

/** Settings of evaluations during training. */
export const evaluationSettings = defineSettings(
  {
    /** Episodes of an evaluation with `evalSteps`. Default 100. */
    evalEpisodes: integer({
      default: 100,
      min: 0,
      max: MAX_EVAL_EPISODES,
      changeable: "live",
      common: true,
      description: "Number of greedy evaluation episodes before and after training, and with evalSteps.",
    }),
    /** Updates between greedy evaluations, which also follow the last update. Default: none. */
    evalSteps: integer({ min: 1, description: "Number of updates between greedy evaluations. Default: none." }),
    /**
     * Whether the agent ends with the parameters of the best evaluation; needs `evalSteps` and
     * `checkpointDir`. Default false.
     */
    loadBestModelAtEnd: boolean({
      description: "End with the parameters of the best evaluation (evalSteps) instead of the last ones.",
      source: "Transformers",
    }),
    ...earlyStoppingSettings,
    /** Mean return of an evaluation with which training ends. Default: none. */
    rewardThreshold: number({
      changeable: "resume",
      description: "End the run when the mean return of an evaluation (evalSteps) reaches this.",
      source: "Stable-Baselines3",
    }),
  },
  { group: "Run", scope: "evaluation" },
);

/** Options of a `Trainer` that are numbers and switches. */
export const trainerSettings = defineSettings({
  ...defineSettings(
    {
      /**
       * Training ends with the update in which this many episodes have ended. Algorithms that
       * compare groups shorten the last batch, so that less than a group exceeds the number; PPO
       * completes its batch of turns.
       */
      episodes: integer({ min: 1, changeable: "live", description: "Number of training episodes." }),
      /** Training ends after this many turns; 0 trains on the agent's demonstrations only. */
      turns: integer({
        min: 0,
        changeable: "live",
        description: "Number of training turns. 0 trains on demonstrations only.",
      }),
      /** Seeds environments and sampling; equal seeds give equal runs. Default 0. */
      seed: integer({ default: 0, min: 0, description: "Random seed; the same seed gives the same run." }),
    },
    { group: "Run", scope: "run", common: true },
  ),
  ...evaluationSettings,
  ...exactEvaluationSettings,
  ...selfPlaySettings,
  /** Number of environments stepped in parallel. Default 16. */
  numEnvs: integer({
    default: 16,
    min: 1,
    group: "Environment",
    scope: "rollouts",
    common: true,
    description: "Number of environments stepped in parallel.",
  }),
  ...defineSettings(
    {
      /**
       * Rollouts that workers collect while earlier ones are trained, 0 to 4. Default 1; 0 waits
       * for each update.
       */
      maxStaleness: integer({
        default: 1,
        min: 0,
        max: 4,
        description: "Number of rollouts that workers collect while earlier ones are trained. 0 waits for each update.",
        source: "AReaL",
      }),
      /** Environments that a worker steps together. Default 8. */
      envsPerJob: integer({
        default: 8,
        min: 1,
        description:
          "Number of environments that a worker steps together. numEnvs / envsPerJob workers are busy at once.",
      }),
    },
    { group: "Workers", scope: "rollouts" },
  ),
  ...defineSettings(
    {
      /**
       * Warns when the policy's entropy falls below this many nats; 0 disables the warning. Default
       * 0.01.
       */
      entropyFloor: number({
        default: ENTROPY_FLOOR,
        min: 0,
        description: "Warn when the entropy falls below this, in nats. 0 disables it.",
      }),
    },
    { group: "Logging and checkpoints", scope: "run" },
  ),
  ...loopSettings,
});

/**
 * @throws INVALID_ARGUMENT for evaluations without episodes, and for what compares evaluations
 * without them.
 */
export function checkEvaluationSettings({
  evalSteps,
  evalEpisodes,
  loadBestModelAtEnd = false,
  evalExact = false,
  earlyStoppingPatience,
  earlyStoppingThreshold = 0,
  rewardThreshold,
}: Partial<Settings<typeof evaluationSettings & typeof exactEvaluationSettings>>): void {
  if (evalExact && evalSteps === undefined)
    throw invalidArgument("`evalExact` belongs to evaluations during training: set `evalSteps`.");
  const comparisons = {
    loadBestModelAtEnd: loadBestModelAtEnd ? true : undefined,
    earlyStoppingPatience,
    rewardThreshold,
  };
  const comparing = Object.entries(comparisons).find(([, value]) => value !== undefined)?.[0];
  if (evalSteps !== undefined && evalEpisodes === 0 && (!evalExact || comparing !== undefined))
    throw invalidArgument("`evalSteps` needs episodes to evaluate: set `evalEpisodes`.");
  if (comparing !== undefined && evalSteps === undefined)
    throw invalidArgument(`\`${comparing}\` compares evaluations during training: set \`evalSteps\`.`);
  checkEarlyStopping({ earlyStoppingPatience, earlyStoppingThreshold });
}

/**
 * @throws INVALID_ARGUMENT for opponents that `parseOpponents` refuses, and for settings of
 * self-play without it.
 */
export function checkSelfPlaySettings({
  selfPlay,
  ...settings
}: Pick<Settings<typeof trainerSettings>, keyof typeof selfPlaySettings>): void {
  parseOpponents(settings.opponents);
  const { selfPlay: _, ...table } = selfPlaySettings;
  const names = Object.keys(table) as (keyof typeof table)[];
  const unused = names.find((name) => settings[name] !== table[name].default);
  if (selfPlay || unused === undefined) return;
  const instead = unused === "opponents" ? " For a fixed opponent, set the environment's option `opponent`." : "";
  throw invalidArgument(`\`${unused}\` is for games in self-play: set \`selfPlay\`, or remove it.${instead}`);
}

/** @throws INVALID_ARGUMENT for a threshold without the patience that reads it. */
export function checkEarlyStopping({
  earlyStoppingPatience,
  earlyStoppingThreshold = 0,
}: Partial<Settings<typeof earlyStoppingSettings>>): void {
  if (earlyStoppingThreshold > 0 && earlyStoppingPatience === undefined)
    throw invalidArgument("`earlyStoppingThreshold` is read with `earlyStoppingPatience` only. Set it, or remove it.");
}

/** Settings of the recording in a run's folder. */
export const recordingSettings = defineSettings(
  {
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
  },
  { group: "Logging and checkpoints", scope: "run", changeable: "resume" },
);

/** Returns the bytes that a run's recording may have; undefined where nothing is recorded. */
export function maxRolloutBytes({
  rollouts,
  maxRolloutMegabytes,
}: Partial<Settings<typeof recordingSettings>>): number | undefined {
  if (rollouts === "none") return undefined;
  return (maxRolloutMegabytes ?? recordingSettings.maxRolloutMegabytes.default) * 1e6;
}
