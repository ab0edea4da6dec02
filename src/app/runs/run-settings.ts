import { invalidArgument } from "../../core/errors.js";
import {
  boolean,
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  splitSettings,
  text,
  type AliasOptions,
  type SettingTable,
  type Settings,
} from "../../core/settings.js";
import { policySamplingSettings } from "../../generation/index.js";
import { EMBEDDED_MODEL, checkTuning, microBatchTokens, modelSettings, tuningSettings } from "../../models/index.js";
import { findModel } from "../../models/registry/index.js";
import { textAgentSettings, onlineSftSettings, checkActionRegex, type ActionMode } from "../../rl/agent/index.js";
import type { ppoSettings } from "../../rl/algorithms/index.js";
import {
  callSettings,
  completionSettings,
  invalidActionSettings,
  promptSettings,
  rewardSettings,
} from "../../rl/rollout/index.js";
import {
  checkEvaluationSettings,
  checkSelfPlaySettings,
  recordingSettings,
  trainerSettings,
} from "../../rl/train/index.js";
import { serviceSettings } from "../../tinker/index.js";
import { checkJudge, judgeSettings } from "../judge/judge-settings.js";
import { checkTeacher, teacherSettings } from "./teacher-settings.js";
import { allAlgorithmSettings, resolveAlgorithmSettings, type AlgorithmSettings } from "./algorithm-settings.js";
import {
  EMBEDDED_TURNS,
  getEmbeddedGroupDefaults,
  getEmbeddedPpoDefaults,
  RANDOM_WARM_START,
  RANDOM_WARM_START_TURNS,
} from "./embedded-defaults.js";
import {
  getPretrainedPpoDefaults,
  getPretrainedTurns,
  hasPretrainedDefaults,
  PRETRAINED_RUN_DEFAULTS,
  SERVICE_PPO_DEFAULTS,
} from "./pretrained-defaults.js";
import { findAlgorithm, isBuiltInAlgorithm } from "./load-algorithm.js";
import { envSettings } from "./run-env.js";
import { trackingSettings } from "./tracking-settings.js";

const LLAMAGYM = "LlamaGym 0.1.1";

/** Settings of the agent of a run, in training and outside. */
export const agentRunSettings = defineSettings(
  {
    ...textAgentSettings,
    actionMode: {
      ...textAgentSettings.actionMode,
      common: true,
      defaultText: "choices if the environment lists them, schema if it has one, else free",
    },
    ...completionSettings,
    actionScoring: { ...completionSettings.actionScoring, default: "token" },
    ...promptSettings,
    historyTurns: { ...promptSettings.historyTurns, allowsInfinity: false },
    maxCompletionLength: integer({
      default: 32,
      min: 1,
      aliases: ["maxNewTokens", "maxTokens"],
      common: true,
      description: "Maximum number of tokens per completion.",
      source: LLAMAGYM,
    }),
    ...policySamplingSettings,
    temperature: { ...policySamplingSettings.temperature, source: "ORLLLaM" },
    topK: { ...policySamplingSettings.topK, source: LLAMAGYM },
    invalidActionRetries: invalidActionSettings.retries,
    ...callSettings,
  },
  { group: "Completions", scope: "agent" },
);

/** Settings of a training run, without those of its algorithm. */
export const runSettings = defineSettings({
  ...trainerSettings,
  evalEpisodes: { ...trainerSettings.evalEpisodes, default: 0 },
  ...envSettings,
  ...defineSettings(
    {
      gradientWorkers: boolean({
        description: "Also compute the gradients of updates on workers: a job for each micro-batch (microBatchTokens).",
      }),
      jobTimeoutSeconds: number({
        default: 3600,
        min: 0,
        description: "Time after which a worker leaves a job to others and ends. 0: no limit.",
      }),
    },
    { group: "Workers", scope: "rollouts", changeable: "resume" },
  ),
  ...modelSettings,
  ...serviceSettings,
  ...agentRunSettings,
  invalidActionPenalty: { ...invalidActionSettings.penalty, group: "Completions", scope: "rollouts" },
  ...defineSettings(rewardSettings, { group: "Algorithm", scope: "rollouts" }),
  ...defineSettings(
    {
      algorithm: text({
        default: "ppo",
        common: true,
        valueName: "name or file",
        description:
          "Learning algorithm: ppo, grpo, rloo, reinforce, online-dpo, or a JavaScript or TypeScript file that exports one. ppo trains a value head; the others compare episodes.",
        source: LLAMAGYM,
      }),
      microBatchTokens,
    },
    { group: "Algorithm", scope: "algorithm" },
  ),
  ...teacherSettings,
  ...tuningSettings,
  ...defineSettings(
    {
      valueHead: choice({
        default: "linear",
        choices: ["linear", "mlp"],
        description: "Architecture of the value head.",
        source: LLAMAGYM,
      }),
      valueHeadDropout: number({ default: 0, min: 0, max: 0.99, description: "Dropout of the value head." }),
    },
    { group: "Trained parameters", scope: "model" },
  ),
  ...judgeSettings,
  ...defineSettings(
    {
      sftWarmStart: text({
        valueName: "file or number",
        defaultText: "random for the embedded model where actions can be listed, in runs of 2,048 turns and more",
        description:
          "Demonstrations to train on first: a JSONL file, a number of episodes by the environment's expert, random for random actions, or none.",
        source: "LlamaGymEDU",
      }),
      ...onlineSftSettings,
    },
    { group: "Demonstrations", scope: "demonstrations" },
  ),
  ...recordingSettings,
  ...trackingSettings,
});

/** All settings of a training run, including those of the algorithms. */
export const trainSettings: SettingTable = { ...allAlgorithmSettings, ...runSettings };

/**
 * Returns the settings of a training run by name; with a loaded algorithm only its own and the
 * run's.
 */
export function trainSettingsOf(algorithm: string = runSettings.algorithm.default): SettingTable {
  if (isBuiltInAlgorithm(algorithm)) return trainSettings;
  const { settings, title } = findAlgorithm(algorithm);
  const duplicate = Object.keys(settings).find(
    (name) => Object.hasOwn(runSettings, name) && name !== "maxCompletionLength",
  );
  if (duplicate !== undefined)
    throw invalidArgument(`${title} has a setting ${duplicate}, which is a setting of every run. Rename it.`);
  return { ...defineSettings(settings, { scope: "algorithm" }), ...runSettings };
}

/** The resolved settings of a run, as stored in config.json. */
export interface TrainConfig extends Settings<typeof runSettings>, Omit<AlgorithmSettings, keyof typeof runSettings> {
  readonly env: string;
  readonly envOptions: Readonly<Record<string, unknown>>;
  /** Hashes of the files that `algorithm`, `env` and `envOptions` name, by path. */
  readonly filesSha256?: Readonly<Record<string, string>> | undefined;
}

/** Options of a training run: `env` and any setting. */
export type TrainOptions = Partial<TrainConfig> &
  AliasOptions<typeof runSettings & typeof ppoSettings> &
  Pick<TrainConfig, "env">;

/** Defaults of the embedded model for any algorithm; the other defaults are for large models. */
const EMBEDDED_DEFAULTS = {
  maxCompletionLength: 8,
  sftBatchSize: 64,
  sftLearningRate: 3e-3,
} as const satisfies Partial<TrainConfig>;

/** Defaults of the tools of an MCP server: calls as JSON, and the task in every prompt. */
const MCP_DEFAULTS = { actionMode: "schema", historyTurns: 16 } as const satisfies Partial<TrainConfig>;

/** Defaults of JSON actions, which end by themselves. */
const SCHEMA_DEFAULTS = { maxCompletionLength: 128 } as const satisfies Partial<TrainConfig>;

const DEFAULT_EPISODES = 5000;

/** What defaults depend on in an environment. */
export interface EnvTraits {
  /** How actions are generated by default. */
  readonly actionMode: ActionMode;
  /** Whether it has a JSON schema of actions whose values are all listed, such as enums. */
  readonly hasListedSchema: boolean;
  /** Earlier turns that the next action depends on. */
  readonly historyTurns: number;
  /** Step at which episodes are truncated; undefined without a limit. */
  readonly maxEpisodeSteps: number | undefined;
  /** Whether random play is fast and names actions that the agent can name. */
  readonly playsAtRandom: boolean;
  /** Whether random play meets most observations again; true where it did not play. */
  readonly observationsRecur: boolean;
}

interface ResolveOptions {
  /**
   * Whether the settings belong to a run to resume: they are complete, so what is missing was off
   * when it started.
   */
  readonly isResolved?: boolean;
  /**
   * The environment, whose traits decide some defaults; without one those are for free completions.
   */
  readonly envTraits?: EnvTraits;
}

/**
 * Resolves the settings of a run.
 * @throws INVALID_ARGUMENT for an unknown name, suggesting the nearest one, for settings of another
 * algorithm, for values out of range, and for an unsupported actionRegex.
 */
export function resolveTrainConfig(
  { env, envOptions = {}, filesSha256, ...explicit }: TrainOptions,
  { isResolved = false, envTraits }: ResolveOptions = {},
): TrainConfig {
  const envDefaults = env.startsWith("mcp:") ? MCP_DEFAULTS : pickTraits(envTraits);
  const given = { ...envDefaults, ...withoutUndefined(explicit) };
  const isEmbedded = (given.model ?? EMBEDDED_MODEL) === EMBEDDED_MODEL;
  const { observationsRecur = true } = envTraits ?? {};
  const hasListedCompletions = isListed(given.actionMode ?? runSettings.actionMode.default, envTraits);
  const isPretrained =
    !isResolved &&
    !isEmbedded &&
    given.backend !== "tinker" &&
    hasPretrainedDefaults({ ...given, isListed: hasListedCompletions });
  const length = isPretrained
    ? { turns: getPretrainedTurns(observationsRecur) }
    : isEmbedded
      ? { turns: EMBEDDED_TURNS }
      : { episodes: DEFAULT_EPISODES };
  const lengthDefaults = given.episodes === undefined && given.turns === undefined ? length : {};
  const [runOptions, algorithmOptions]: [Partial<Settings<typeof runSettings>>, AlgorithmSettings] = splitSettings(
    "A run",
    runSettings,
    trainSettingsOf(given.algorithm),
    given,
  );
  const modelDefaults = isEmbedded
    ? EMBEDDED_DEFAULTS
    : { ...(isPretrained ? PRETRAINED_RUN_DEFAULTS : {}), ...findModel(runOptions.model!)?.model.defaults };
  const runConfig = resolveSettings("A run", runSettings, {
    ...lengthDefaults,
    ...modelDefaults,
    ...(runOptions.actionMode === "schema" ? SCHEMA_DEFAULTS : {}),
    ...(isEmbedded && envTraits?.playsAtRandom === true && isLong({ ...lengthDefaults, ...runOptions })
      ? { sftWarmStart: RANDOM_WARM_START }
      : {}),
    ...runOptions,
  });
  checkConflicts(runConfig);
  checkTeacher(runConfig);
  checkActionRegex(runConfig);
  const algorithmConfig = resolveAlgorithmSettings(runConfig.algorithm, {
    ...getAlgorithmDefaults(
      {
        ...runConfig,
        maxEpisodeSteps: runConfig.maxEpisodeSteps ?? envTraits?.maxEpisodeSteps,
        isListed: hasListedCompletions,
        observationsRecur,
      },
      algorithmOptions,
      isEmbedded,
      isPretrained,
    ),
    ...algorithmOptions,
  });
  const files = filesSha256 === undefined ? {} : { filesSha256 };
  return { env, envOptions, ...files, ...runConfig, ...algorithmConfig };
}

/** Whether a run is long enough for a warm start on random actions. */
function isLong({ turns, episodes }: Pick<Partial<TrainConfig>, "turns" | "episodes">): boolean {
  return Math.min(turns ?? Infinity, episodes ?? Infinity) >= 2 * RANDOM_WARM_START_TURNS;
}

/**
 * Whether completions are among finitely many, so that a large entropy bonus rewards other actions
 * rather than noise.
 */
function isListed(actionMode: ActionMode, traits: EnvTraits | undefined): boolean {
  return ["choices", "scored"].includes(actionMode) || (actionMode === "schema" && traits?.hasListedSchema === true);
}

function pickTraits(traits: EnvTraits | undefined): Partial<TrainOptions> {
  return traits === undefined ? {} : { actionMode: traits.actionMode, historyTurns: traits.historyTurns };
}

function withoutUndefined<Values extends object>(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Values;
}

/** @throws INVALID_ARGUMENT for settings that contradict each other or would have no effect. */
function checkConflicts(run: Settings<typeof runSettings>): void {
  const headSetting = (["valueHead", "valueHeadDropout"] as const).find(
    (name) => run[name] !== runSettings[name].default,
  );
  const { title, hasCritic } = findAlgorithm(run.algorithm);
  if (headSetting !== undefined && !hasCritic)
    throw invalidArgument(`\`${headSetting}\` is for algorithms with a value head, but ${title} has none. Remove it.`);
  checkEvaluationSettings(run);
  checkSelfPlaySettings(run);
  checkTuning(run);
  checkJudge(run);
}

/** Returns defaults of the algorithm's settings that depend on the run. */
function getAlgorithmDefaults(
  run: Pick<TrainConfig, "algorithm" | "backend" | "model" | "maxCompletionLength" | "maxEpisodeSteps"> & {
    readonly isListed: boolean;
    readonly observationsRecur: boolean;
  },
  given: AlgorithmSettings,
  isEmbedded: boolean,
  isPretrained: boolean,
): AlgorithmSettings {
  const { algorithm, maxCompletionLength } = run;
  const hasSetting = (name: string) => Object.hasOwn(findAlgorithm(algorithm).settings, name);
  if (!isBuiltInAlgorithm(algorithm)) return hasSetting("maxCompletionLength") ? { maxCompletionLength } : {};
  // A service does not return the entropy of free completions.
  const lacksEntropy = run.backend === "tinker" && !run.isListed;
  const serviceDefaults = lacksEntropy && hasSetting("entropyCoef") ? { entropyCoef: 0 } : {};
  if (algorithm !== "ppo")
    return {
      maxCompletionLength,
      ...(isEmbedded ? getEmbeddedGroupDefaults({ ...run, algorithm }, given) : {}),
      ...serviceDefaults,
    };
  const defaults: AlgorithmSettings = isEmbedded
    ? getEmbeddedPpoDefaults(run)
    : isPretrained
      ? getPretrainedPpoDefaults(run)
      : run.backend === "tinker"
        ? SERVICE_PPO_DEFAULTS
        : {};
  const { batchSize } = given;
  const smallBatch =
    batchSize === undefined ? {} : { miniBatchSize: Math.min(batchSize, defaults.miniBatchSize ?? 16) };
  return { ...defaults, ...smallBatch, ...serviceDefaults };
}
