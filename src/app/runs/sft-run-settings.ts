import { resolveSftConfig, sftSettings, type SftConfig } from "../../rl/algorithms/index.js";
import {
  defineSettings,
  resolveSettings,
  selectSettings,
  text,
  type Settings,
  type SettingTable,
} from "../../core/settings.js";
import { checkTuning } from "../../models/index.js";
import { checkCompletionTeacher, completionTeacherSettings } from "./teacher-completions.js";
import { checkExampleEvaluations, exampleRunSettings } from "./example-run-settings.js";

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

export const allSftRunSettings = {
  ...exampleRunSettings,
  ...sftSettings,
  ...completionTeacherSettings,
} as const satisfies SettingTable;

/** The resolved settings of a run, as stored in config.json. */
export interface SftRunConfig extends Settings<typeof allSftRunSettings> {
  /** File of training examples. */
  readonly data: string;
  /** Hashes of the contents of `data` and `evalData`, by which a resumed run recognizes them. */
  readonly dataSha256?: string;
  readonly evalDataSha256?: string;
}

export type SftRunOptions = Partial<SftRunConfig> & Pick<SftRunConfig, "data">;

/**
 * Resolves the settings of a run. @throws INVALID_ARGUMENT for unknown names and values out of
 * range.
 */
export function resolveSftRunConfig({ data, dataSha256, evalDataSha256, ...given }: SftRunOptions): SftRunConfig {
  const hashes = { dataSha256, evalDataSha256 };
  const config = { data, ...hashes, ...resolveSettings("A fine-tuning run", allSftRunSettings, given) };
  checkTuning(config);
  checkExampleEvaluations(config);
  checkCompletionTeacher(config);
  return config;
}

/** Returns the SFT settings of a run. */
export function getSftConfig(config: SftRunConfig): SftConfig {
  return resolveSftConfig(selectSettings(sftSettings, config));
}
