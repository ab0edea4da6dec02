import { resolveSftConfig, sftSettings, type SftConfig } from "../../rl/algorithms/index.js";
import {
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  selectSettings,
  type Settings,
  type SettingTable,
  text,
} from "../../core/settings.js";
import { checkTuning, modelSettings, tuningSettings } from "../../models/index.js";
import { serviceSettings } from "../../tinker/index.js";
import { loopSettings } from "../../rl/train/index.js";
import { trackingSettings } from "./tracking-settings.js";

/** Settings of a fine-tuning run, without those of SFT itself. */
const sftRunSettings = defineSettings({
  ...modelSettings,
  ...serviceSettings,
  ...tuningSettings,
  ...trackingSettings,
  evalData: text({
    valueName: "file",
    changeable: "resume",
    common: true,
    description: "JSONL, JSON or CSV file of evaluation examples.",
  }),
  evalSplit: number({
    default: 0,
    min: 0,
    max: 0.99,
    description: "Fraction of the examples held out for evaluation, without evalData.",
  }),
  evalSteps: integer({ min: 1, description: "Number of updates between evaluations. Default: once per epoch." }),
  saveSteps: { ...loopSettings.saveSteps, default: 100 },
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

/** The file of the examples. */
export const dataSettings = defineSettings({
  data: text({
    short: "d",
    valueName: "file",
    group: "Run",
    changeable: "resume",
    common: true,
    description: "JSONL, JSON or CSV file of examples: messages, or prompt and completion.",
  }),
});

export const allSftRunSettings = { ...sftRunSettings, ...sftSettings } as const satisfies SettingTable;

/** The resolved settings of a run, as stored in config.json. */
export interface SftRunConfig extends Settings<typeof allSftRunSettings> {
  /** File of training examples. */
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
  return resolveSftConfig(selectSettings(sftSettings, config));
}
