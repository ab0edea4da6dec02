import { onlineSftSettings } from "../../../rl/agent/demonstrations/online-sft-settings.js";
import { ALGORITHM_NAMES, algorithms, type AlgorithmName } from "../../../rl/algorithms/algorithms.js";
import { runSettings, trainSettings } from "../../runs/run-settings.js";
import type { OptionGroups } from "./render-help.js";
import { toOptionName } from "./option-table.js";

/** Settings of an agent's completions, in training and outside; the temperature is an option of each command. */
export const COMPLETION_SETTINGS = [
  "replies",
  "replyPattern",
  "actionScoring",
  "historyTurns",
  "maxNewTokens",
  "topK",
  "topP",
  "replyPrefix",
  "maxContext",
  "contextPolicy",
  "invalidRetries",
] as const satisfies readonly (keyof typeof runSettings)[];

/** Headings of the run settings. */
const runSettingGroups = {
  Run: ["episodes", "turns", "seed"],
  Environment: ["maxSteps", "numEnvs"],
  Model: ["model", "adapter", "device", "threads", "quantise", "backward"],
  Completions: [...COMPLETION_SETTINGS, "temperature", "invalidPenalty"],
  "Logging and checkpoints": ["evalEpisodes", "entropyFloor", "saveEvery", "tensorboard", "wandbProject", "wandbMode"],
  "Trained parameters": ["train", "r", "loraAlpha", "loraDropout", "targetModules", "valueHead", "valueHeadDropout"],
  Demonstrations: ["sftWarmStart", ...(Object.keys(onlineSftSettings) as (keyof typeof onlineSftSettings)[])],
  Algorithm: ["algorithm", "shareSparseRewards", "maxTokens"],
} as const satisfies Readonly<Record<string, readonly (keyof typeof runSettings)[]>>;

/** Headings of the options of `train` that are not settings. */
const commandOptionGroups: OptionGroups = {
  Run: ["config", "output", "resume"],
  Environment: ["option", "env-module"],
  Model: ["load-in-8bit", "load-in-4bit"],
};

/** Returns all options of `train` by heading. */
export function trainOptionGroups(): OptionGroups {
  const algorithmSettings = Object.keys(trainSettings).filter((name) => !Object.hasOwn(runSettings, name));
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
      ...names.map(toOptionName),
      ...(title === "Algorithm" ? common.map(toOptionName) : []),
    ],
  ]);
  return {
    ...(Object.fromEntries(runEntries) as OptionGroups),
    "PPO only": ppoOnly.map(toOptionName),
    "Some algorithms": others.map(toOptionName),
  };
}
