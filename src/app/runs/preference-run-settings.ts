import { resolveSettings, selectSettings, type Settings, type SettingTable } from "../../core/settings.js";
import { EMBEDDED_MODEL, checkTuning } from "../../models/index.js";
import {
  dpoSettings,
  resolveDpoConfig,
  type DpoConfig,
  ktoSettings,
  resolveKtoConfig,
  type KtoConfig,
} from "../../rl/preferences/index.js";
import { checkExampleEvaluations, exampleRunSettings } from "./example-run-settings.js";
import { dataSettings } from "./sft-run-settings.js";

/** Algorithms that train on files of preferences. */
export type PreferenceAlgorithm = "dpo" | "kto";

const algorithmSettings = { dpo: dpoSettings, kto: ktoSettings } as const satisfies Record<
  PreferenceAlgorithm,
  SettingTable
>;

/** What `data` holds, by algorithm. */
const DATA: Readonly<Record<PreferenceAlgorithm, string>> = {
  dpo: "JSONL, JSON or CSV file of pairs: chosen and rejected, with a prompt or beginning alike.",
  kto: "JSONL, JSON or CSV file of completions: prompt, completion and label, or pairs as for llamagym dpo.",
};

/** Learning rate for the embedded model, which has a million parameters. */
const EMBEDDED_LEARNING_RATE = 1e-3;
/** Learning rate for adapters: TRL recommends ten times the rate of all weights. */
const ADAPTER_LEARNING_RATE = 1e-5;

/** Returns the settings of runs of an algorithm, without the file. */
export function preferenceRunSettingsOf(algorithm: PreferenceAlgorithm): SettingTable {
  const { learningRate, ...settings } = algorithmSettings[algorithm];
  return {
    ...exampleRunSettings,
    learningRate: {
      ...learningRate,
      description: "Learning rate of AdamW.",
      defaultText: `${learningRate.default} for all weights, ${ADAPTER_LEARNING_RATE} for an adapter, ${EMBEDDED_LEARNING_RATE} for the embedded model`,
    },
    ...settings,
  };
}

/** Returns the setting of the file. */
export function preferenceDataSettings(algorithm: PreferenceAlgorithm) {
  return { data: { ...dataSettings.data, description: DATA[algorithm] } };
}

/** The resolved settings of a run, as stored in config.json. */
export interface PreferenceRunConfig
  extends Settings<typeof exampleRunSettings>, Pick<DpoConfig, "seed" | "learningRate" | "microBatchTokens"> {
  readonly algorithm: PreferenceAlgorithm;
  /** File of training examples. */
  readonly data: string;
  readonly dataSha256?: string | undefined;
  readonly evalDataSha256?: string | undefined;
}

export type PreferenceRunOptions = Partial<PreferenceRunConfig> & Pick<PreferenceRunConfig, "algorithm" | "data">;

/**
 * Resolves the settings of a run. @throws INVALID_ARGUMENT for unknown names and values out of
 * range.
 */
export function resolvePreferenceRunConfig({
  algorithm,
  data,
  dataSha256,
  evalDataSha256,
  ...given
}: PreferenceRunOptions): PreferenceRunConfig {
  const table = preferenceRunSettingsOf(algorithm);
  const { model = EMBEDDED_MODEL, tuning = "lora" } = given;
  const learningRate =
    model === EMBEDDED_MODEL ? EMBEDDED_LEARNING_RATE : tuning === "lora" ? ADAPTER_LEARNING_RATE : undefined;
  const resolved = resolveSettings(`A ${algorithm} run`, table, {
    ...given,
    learningRate: given.learningRate ?? learningRate,
  });
  const config = { algorithm, data, dataSha256, evalDataSha256, ...resolved } as unknown as PreferenceRunConfig;
  getPreferenceConfig(config);
  checkTuning(config);
  checkExampleEvaluations(config);
  return config;
}

/** Returns the settings of a run's algorithm. */
export function getPreferenceConfig(config: PreferenceRunConfig): DpoConfig | KtoConfig {
  const given = selectSettings(algorithmSettings[config.algorithm], config);
  return config.algorithm === "dpo" ? resolveDpoConfig(given) : resolveKtoConfig(given);
}
