import {
  type DpoEvaluation,
  type DpoMetrics,
  type KtoEvaluation,
  type KtoMetrics,
  readPreferences,
  readUnpairedPreferences,
  DpoTrainer,
  KtoTrainer,
} from "../../rl/preferences/index.js";
import type { LanguageModel } from "../../generation/index.js";
import { loadExamples } from "./load-examples.js";
import { openExampleRun, type OpenedExampleRun } from "./open-example-run.js";
import { OpenRun, resumeProgram, startProgram, type RunHooks, type RunProgram } from "./open-run.js";
import {
  getPreferenceConfig,
  preferenceDataSettings,
  preferenceRunSettingsOf,
  resolvePreferenceRunConfig,
  type PreferenceAlgorithm,
  type PreferenceRunConfig,
  type PreferenceRunOptions,
} from "./preference-run-settings.js";

type Metrics = DpoMetrics | KtoMetrics;
type Evaluation = DpoEvaluation | KtoEvaluation;

/** The open trainer of a run on preferences. */
export type OpenedPreferenceRun = OpenedExampleRun<PreferenceRunConfig, DpoTrainer | KtoTrainer, Metrics, Evaluation>;

/** An open run on a file of preferences. */
export type PreferenceRun = OpenRun<PreferenceRunConfig, OpenedPreferenceRun>;

/**
 * Starts a run in a new folder. Nothing is written before the model and the examples are loaded.
 * @throws as `startProgram`, and FILE_CORRUPT for an invalid line.
 */
export async function startPreferenceRun(
  options: PreferenceRunOptions,
  folder: string,
  hooks: RunHooks = {},
): Promise<PreferenceRun> {
  return new OpenRun(await startProgram(createProgram(options.algorithm), options, folder, hooks));
}

/**
 * Resumes a run; `data` and `evalData` may name the same contents at another path.
 * @throws as `resumeProgram`, FILE_NOT_FOUND for missing data, RUN_INCOMPATIBLE for data that has
 * changed.
 */
export async function resumePreferenceRun(
  algorithm: PreferenceAlgorithm,
  folder: string,
  changes: Partial<PreferenceRunOptions> = {},
  hooks: RunHooks = {},
): Promise<PreferenceRun> {
  return new OpenRun(await resumeProgram(createProgram(algorithm), folder, changes, hooks));
}

function createProgram(
  algorithm: PreferenceAlgorithm,
): RunProgram<PreferenceRunOptions, PreferenceRunConfig, RunHooks, OpenedPreferenceRun> {
  return {
    command: algorithm,
    resultFolder: "model",
    settings: { ...preferenceDataSettings(algorithm), ...preferenceRunSettingsOf(algorithm) },
    resolve: resolvePreferenceRunConfig,
    open: async (context) =>
      openExampleRun<PreferenceRunConfig, Metrics, Evaluation, DpoTrainer | KtoTrainer>(context, createTrainer),
  };
}

async function createTrainer(config: PreferenceRunConfig, model: LanguageModel) {
  const settings = getPreferenceConfig(config);
  const files = { ...config, toolCalls: settings.toolCalls };
  if (config.algorithm === "dpo") {
    const { examples: train, evalExamples: evaluation, ...read } = await loadExamples(files, model, readPreferences);
    return { trainer: await DpoTrainer.create(model, { ...settings, train, evaluation } as never), ...read };
  }
  const { examples, evalExamples, ...read } = await loadExamples(files, model, readUnpairedPreferences);
  const trainer = await KtoTrainer.create(model, { ...settings, train: examples, evaluation: evalExamples } as never);
  return { trainer, ...read };
}
