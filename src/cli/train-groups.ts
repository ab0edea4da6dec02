import { imitationSettings } from "../agent/replay/settings.js";
import { ALGORITHM_NAMES, algorithms, type AlgorithmName } from "../algorithms/table.js";
import { runSettings, trainSettings } from "../training/settings.js";
import type { OptionGroups } from "./help.js";
import { optionName } from "./setting-options.js";

/** The settings that say how an agent replies, whether it is trained or not; the temperature has its own meaning in each command. */
export const REPLY_SETTINGS = [
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
const runGroups = {
  Run: ["episodes", "turns", "seed"],
  Environment: ["maxSteps", "numEnvs"],
  Model: ["model", "adapter", "device", "threads", "quantise", "backward"],
  Replies: [...REPLY_SETTINGS, "temperature", "invalidPenalty"],
  "Watching and saving": ["evalEpisodes", "entropyFloor", "saveEvery", "tensorboard", "wandbProject", "wandbMode"],
  "What is trained": ["train", "r", "loraAlpha", "loraDropout", "targetModules", "valueHead", "valueHeadDropout"],
  Demonstrations: ["sftWarmStart", ...(Object.keys(imitationSettings) as (keyof typeof imitationSettings)[])],
  Learning: ["algorithm", "shareSparseRewards", "maxTokens"],
} as const satisfies Readonly<Record<string, readonly (keyof typeof runSettings)[]>>;

/** Options of `train` that are no settings. */
const ownGroups: OptionGroups = {
  Run: ["config", "output", "resume"],
  Environment: ["option"],
  Model: ["load-in-8bit", "load-in-4bit"],
};

/** All options of `train` under headings. */
export function trainGroups(): OptionGroups {
  const algorithmic = Object.keys(trainSettings).filter((name) => !Object.hasOwn(runSettings, name));
  const isOf = (name: string) => (algorithm: AlgorithmName) => Object.hasOwn(algorithms[algorithm].settings, name);
  const common = algorithmic.filter((name) => ALGORITHM_NAMES.every(isOf(name)));
  const ppo = algorithmic.filter((name) => ALGORITHM_NAMES.every((each) => isOf(name)(each) === (each === "ppo")));
  const others = algorithmic.filter((name) => !common.includes(name) && !ppo.includes(name));
  const run = Object.entries(runGroups).map(([title, names]) => [
    title,
    [...(ownGroups[title] ?? []), ...names.map(optionName), ...(title === "Learning" ? common.map(optionName) : [])],
  ]);
  return {
    ...(Object.fromEntries(run) as OptionGroups),
    "Learning by ppo": ppo.map(optionName),
    "Learning by the algorithms that are named": others.map(optionName),
  };
}
