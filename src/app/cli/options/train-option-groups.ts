import type { SettingTable } from "../../../core/settings.js";
import { onlineSftSettings } from "../../../rl/agent/demonstrations/online-sft-settings.js";
import { ALGORITHM_NAMES, algorithms, type AlgorithmName } from "../../../rl/algorithms/algorithms.js";
import { runSettings, trainSettings } from "../../runs/run-settings.js";
import type { OptionGroups } from "./render-help.js";
import { toOptionName } from "./option-table.js";
import { optionNames } from "./setting-options.js";

/** Settings of an agent's completions, in training and outside; the temperature is an option of each command. */
export const COMPLETION_SETTINGS = [
  "actionMode",
  "actionRegex",
  "actionScoring",
  "historyTurns",
  "maxCompletionLength",
  "topK",
  "topP",
  "completionPrefix",
  "maxContextLength",
  "contextOverflow",
  "invalidActionRetries",
] as const satisfies readonly (keyof typeof runSettings)[];

/** Headings of the run settings. */
const runSettingGroups = {
  Run: ["episodes", "turns", "seed"],
  Environment: ["maxEpisodeSteps", "numEnvs"],
  Model: ["model", "adapter", "device", "threads", "quantize", "backwardPrecision"],
  Completions: [...COMPLETION_SETTINGS, "temperature", "invalidActionPenalty"],
  "Logging and checkpoints": [
    "evalEpisodes",
    "entropyFloor",
    "saveSteps",
    "completionLogSteps",
    "numLoggedCompletions",
    "callTimeoutSeconds",
    "tensorboard",
    "tracker",
    "wandbProject",
    "wandbMode",
  ],
  "Trained parameters": ["tuning", "r", "loraAlpha", "loraDropout", "targetModules", "valueHead", "valueHeadDropout"],
  Demonstrations: ["sftWarmStart", ...(Object.keys(onlineSftSettings) as (keyof typeof onlineSftSettings)[])],
  Algorithm: ["algorithm", "spreadSparseRewards", "microBatchTokens"],
} as const satisfies Readonly<Record<string, readonly (keyof typeof runSettings)[]>>;

/** Headings of the options of `train` that are not settings. */
const commandOptionGroups: OptionGroups = {
  Run: ["config", "output", "resume"],
  Environment: ["option", "env-module"],
};

/** Returns all options of `train` by heading. */
export function trainOptionGroups(settings: SettingTable = trainSettings): OptionGroups {
  const algorithmSettings = Object.keys(settings).filter((name) => !Object.hasOwn(runSettings, name));
  const isSettingOf = (name: string) => (algorithm: AlgorithmName) =>
    Object.hasOwn(algorithms[algorithm].settings, name);
  const common = algorithmSettings.filter((name) => ALGORITHM_NAMES.every(isSettingOf(name)));
  const ppoOnly = algorithmSettings.filter((name) =>
    ALGORITHM_NAMES.every((each) => isSettingOf(name)(each) === (each === "ppo")),
  );
  const others = algorithmSettings.filter((name) => !common.includes(name) && !ppoOnly.includes(name));
  const runEntries = Object.entries(runSettingGroups).map(([title, names]) => [
    title,
    [
      ...(commandOptionGroups[title] ?? []),
      ...names.flatMap((name) => optionNames(name, runSettings[name])),
      ...(title === "Algorithm" ? common.map(toOptionName) : []),
    ],
  ]);
  return {
    ...(Object.fromEntries(runEntries) as OptionGroups),
    "PPO only": ppoOnly.flatMap((name) => optionNames(name, trainSettings[name])),
    "Some algorithms": others.map(toOptionName),
  };
}
