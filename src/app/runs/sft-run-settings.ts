import { resolveSftConfig, sftSettings, type SftConfig } from "../../rl/algorithms/sft/settings.js";
import {
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  type Settings,
  type SettingTable,
  text,
} from "../../core/settings.js";
import { checkTuning, modelSettings, tuningSettings } from "../../models/model-settings.js";
import { runSettings } from "./run-settings.js";

/** Settings of a fine-tuning run, without those of SFT itself. */
const sftRunSettings = defineSettings({
  ...modelSettings,
  ...tuningSettings,
  tracker: runSettings.tracker,
  evalData: text({ description: "JSONL file of evaluation examples." }),
  evalSplit: number({
    default: 0,
    min: 0,
    max: 0.99,
    description: "Fraction of the examples held out for evaluation, without evalData.",
  }),
  evalSteps: integer({ min: 1, description: "Number of updates between evaluations. Default: once per epoch." }),
  saveSteps: integer({ default: 100, min: 1, description: "Number of updates between checkpoints." }),
  onInvalidLine: choice({
    default: "error",
    choices: ["error", "skip"],
    description: "Whether an invalid line fails the run or is skipped.",
  }),
  prompts: choice({
    default: "auto",
    choices: ["auto", "chat", "text"],
    description:
      "Format of prompt and completion texts: chat messages or plain text. auto is chat for models with a chat template.",
  }),
});

export const allSftRunSettings = { ...sftRunSettings, ...sftSettings } as const satisfies SettingTable;

/** The resolved settings of a run, as stored in config.json. */
export interface SftRunConfig extends Settings<typeof allSftRunSettings> {
  /** JSONL file of training examples. */
  readonly data: string;
  /** Hashes of the contents of `data` and `evalData`, by which a resumed run recognizes them. */
  readonly dataSha256?: string;
  readonly evalDataSha256?: string;
}

export type SftRunOptions = Partial<SftRunConfig> & Pick<SftRunConfig, "data">;

/** Resolves the settings of a run. @throws INVALID_ARGUMENT for unknown names and values out of range. */
export function resolveSftRunConfig({ data, dataSha256, evalDataSha256, ...given }: SftRunOptions): SftRunConfig {
  const hashes = { dataSha256, evalDataSha256 };
  const config = { data, ...hashes, ...resolveSettings("A fine-tuning run", allSftRunSettings, given) };
  checkTuning(config);
  return config;
}

/** Returns the SFT settings of a run. */
export function getSftConfig(config: SftRunConfig): SftConfig {
  const entries = Object.keys(sftSettings).map((name) => [name, config[name as keyof typeof sftSettings]]);
  return resolveSftConfig(Object.fromEntries(entries) as Partial<SftConfig>);
}
