import {
  defineSettings,
  list,
  resolveSettings,
  selectSettings,
  splitSettings,
  text,
  type SettingTable,
  type Settings,
} from "../../core/settings.js";
import { invalidArgument } from "../../core/errors.js";
import { EMBEDDED_MODEL, checkTuning, modelSettings, tuningSettings } from "../../models/index.js";
import { algorithms } from "../../rl/algorithms/index.js";
import {
  checkTeachable,
  checkToolSettings,
  checkTruncation,
  promptSettings,
  type PromptAlgorithm,
  type ResolvedPromptConfig,
} from "../../rl/train/index.js";
import { serviceSettings } from "../../tinker/index.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";
import { getEmbeddedGroupDefaults } from "./embedded-defaults.js";
import { checkTeacher, teacherSettings } from "./teacher-settings.js";
import { trackingSettings } from "./tracking-settings.js";

/** Algorithms of runs on prompts. */
export const PROMPT_ALGORITHMS = ["grpo", "rloo"] as const satisfies readonly PromptAlgorithm[];

const moduleSettings = defineSettings(
  {
    rewardFuncs: list({
      valueName: "file",
      changeable: "resume",
      description:
        "JavaScript or TypeScript module of reward functions: its default export, or all functions that it exports. FILE.js#name selects one. May be repeated.",
    }),
    rewardWeights: text({
      valueName: "numbers",
      description: "Comma-separated weights of the reward functions, in order. Default: 1 each.",
    }),
    tools: list({
      valueName: "file",
      changeable: "resume",
      description:
        "JavaScript or TypeScript module of tools that the model may call: its default export, or all tools that it exports. FILE.js#name selects one. May be repeated.",
    }),
  },
  { group: "Run", common: true },
);

/** Settings of a run on prompts, without those of its algorithm. */
export const promptRunSettings = defineSettings({
  data: text({
    short: "d",
    valueName: "file",
    group: "Run",
    changeable: "resume",
    common: true,
    description: "JSONL, JSON or CSV file of prompts: a prompt per row, and columns for the reward functions.",
  }),
  ...moduleSettings,
  ...promptSettings,
  ...teacherSettings,
  ...modelSettings,
  ...serviceSettings,
  ...tuningSettings,
  ...trackingSettings,
});

/** Returns the settings of a run on prompts, with those of its algorithm. */
export function promptRunSettingsOf(algorithm: PromptAlgorithm): SettingTable {
  return {
    ...defineSettings(algorithms[algorithm].settings as SettingTable, { group: "Algorithm", scope: "algorithm" }),
    ...promptRunSettings,
  };
}

type FileConfig = Readonly<Record<"data" | "rewardFuncs", unknown>>;

/** The resolved settings of a run, as stored in config.json. */
export interface PromptRunConfig
  extends
    Omit<Settings<typeof promptRunSettings>, keyof FileConfig>,
    Omit<AlgorithmSettings, keyof typeof promptRunSettings> {
  readonly algorithm: PromptAlgorithm;
  readonly data: string;
  readonly rewardFuncs: readonly string[];
  /**
   * Hashes of the contents of `data` and of the modules of `rewardFuncs` and `tools`, by which a
   * resumed run recognizes them.
   */
  readonly dataSha256?: string;
  readonly rewardFuncsSha256?: readonly string[];
  readonly toolsSha256?: readonly string[];
}

export type PromptRunOptions = Partial<PromptRunConfig> & Pick<PromptRunConfig, "algorithm">;

/**
 * Resolves the settings of a run. @throws INVALID_ARGUMENT for unknown names, values out of range
 * and missing files.
 */
export function resolvePromptRunConfig({
  algorithm,
  dataSha256,
  rewardFuncsSha256,
  toolsSha256,
  ...given
}: PromptRunOptions): PromptRunConfig {
  const owner = `A run of ${algorithm}`;
  const [runOptions, algorithmOptions] = splitSettings(
    owner,
    promptRunSettings,
    promptRunSettingsOf(algorithm),
    given,
  ) as [Partial<Settings<typeof promptRunSettings>>, AlgorithmSettings];
  const config = resolveSettings(owner, promptRunSettings, runOptions);
  const { data, rewardFuncs = [], teacher } = config;
  if (data === undefined) throw invalidArgument(`${owner} needs \`data\`, a JSONL file of prompts.`);
  if (rewardFuncs.length === 0 && teacher === undefined)
    throw invalidArgument(`${owner} needs \`rewardFuncs\`, modules of reward functions, or a \`teacher\`.`);
  checkTeacher({ ...config, actionMode: "free" });
  if (teacher !== undefined) checkTeachable(algorithm);
  checkTuning(config);
  checkToolSettings(config, config.tools);
  parseRewardWeights(config.rewardWeights);
  if (config.rewardWeights !== undefined && rewardFuncs.length === 0)
    throw invalidArgument("`rewardWeights` needs `rewardFuncs`, whose weights they are.");
  const isEmbedded = config.model === EMBEDDED_MODEL;
  const algorithmConfig = algorithms[algorithm].resolve({
    ...(isEmbedded ? getEmbeddedPromptDefaults(algorithm, algorithmOptions) : {}),
    // A service does not return the entropy of free completions.
    ...(config.backend === "tinker" ? { entropyCoef: 0 } : {}),
    ...algorithmOptions,
  });
  checkTruncation(config, algorithmConfig);
  const hashes = { dataSha256, rewardFuncsSha256, toolsSha256 };
  return { algorithm, ...algorithmConfig, ...config, ...hashes, data, rewardFuncs };
}

/** Returns defaults of the embedded model: those of episodes, whose completions are short. */
function getEmbeddedPromptDefaults(algorithm: PromptAlgorithm, given: AlgorithmSettings): AlgorithmSettings {
  return { maxCompletionLength: 8, ...getEmbeddedGroupDefaults({ algorithm, isListed: false }, given), minTurns: 0 };
}

/** Returns the settings of a run for its trainer. */
export function getPromptConfig(config: PromptRunConfig): ResolvedPromptConfig<PromptAlgorithm> {
  const { settings, resolve } = algorithms[config.algorithm];
  return {
    config: resolveSettings("A trainer", promptSettings, selectSettings(promptSettings, config)),
    algorithmConfig: resolve(selectSettings(settings, config)),
  };
}

/** Parses the setting rewardWeights: 1,0.5. @throws INVALID_ARGUMENT */
export function parseRewardWeights(text: string | undefined): readonly number[] | undefined {
  if (text === undefined) return undefined;
  const weights = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  if (weights.every(Number.isFinite)) return weights;
  throw invalidArgument(
    `\`rewardWeights\` must be comma-separated numbers, such as 1,0.5, got ${JSON.stringify(text)}.`,
  );
}
