import { onlineSftSettings } from "../../../rl/agent/demonstrations/online-sft-settings.js";
import { ALGORITHM_NAMES, algorithms, type AlgorithmName } from "../../../rl/algorithms/algorithms.js";
import { runSettings, trainSettings } from "../../runs/run-settings.js";
import type { OptionGroups } from "./render-help.js";
import { toOptionName } from "./setting-options.js";

/** The settings that say how an agent replies, whether it is trained or not; the temperature has its own meaning in each command. */
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

/** The run's own settings under headings. */
const runSettingGroups = {
  Run: ["episodes", "turns", "seed"],
  Environment: ["maxSteps", "numEnvs"],
  Model: ["model", "adapter", "device", "threads", "quantise", "backward"],
  Replies: [...COMPLETION_SETTINGS, "temperature", "invalidPenalty"],
  "Watching and saving": ["evalEpisodes", "entropyFloor", "saveEvery", "tensorboard", "wandbProject", "wandbMode"],
  "What is trained": ["train", "r", "loraAlpha", "loraDropout", "targetModules", "valueHead", "valueHeadDropout"],
  Demonstrations: ["sftWarmStart", ...(Object.keys(onlineSftSettings) as (keyof typeof onlineSftSettings)[])],
  Learning: ["algorithm", "shareSparseRewards", "maxTokens"],
} as const satisfies Readonly<Record<string, readonly (keyof typeof runSettings)[]>>;

/** Options of `train` that are no settings. */
const commandOptionGroups: OptionGroups = {
  Run: ["config", "output", "resume"],
  Environment: ["option"],
  Model: ["load-in-8bit", "load-in-4bit"],
};

/** All options of `train` under headings. */
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
      ...(title === "Learning" ? common.map(toOptionName) : []),
    ],
  ]);
  return {
    ...(Object.fromEntries(runEntries) as OptionGroups),
    "Learning by ppo": ppoOnly.map(toOptionName),
    "Learning by the algorithms that are named": others.map(toOptionName),
  };
}
