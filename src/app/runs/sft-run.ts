import type { LanguageModel } from "../../generation/index.js";
import type { SftEvaluation, SftMetrics } from "../../rl/algorithms/index.js";
import { readExamples } from "../../rl/data/index.js";
import { SftTrainer } from "../../rl/train/index.js";
import { loadExamples } from "./load-examples.js";
import { openExampleRun, type OpenedExampleRun } from "./open-example-run.js";
import { resumeProgram, startProgram, OpenRun, type RunHooks, type RunProgram } from "./open-run.js";
import {
  allSftRunSettings,
  dataSettings,
  getSftConfig,
  resolveSftRunConfig,
  type SftRunConfig,
  type SftRunOptions,
} from "./sft-run-settings.js";

/** The open trainer of supervised fine-tuning. */
export type OpenedSftRun = OpenedExampleRun<SftRunConfig, SftTrainer, SftMetrics, SftEvaluation>;

/** An open run of supervised fine-tuning. */
export type SftRun = OpenRun<SftRunConfig, OpenedSftRun>;

const sftProgram: RunProgram<SftRunOptions, SftRunConfig, RunHooks, OpenedSftRun> = {
  command: "sft",
  resultFolder: "model",
  settings: { ...dataSettings, ...allSftRunSettings },
  resolve: resolveSftRunConfig,
  open: async (context) => openExampleRun(context, createTrainer),
};

/**
 * Starts a run in a new folder. Nothing is written before the model and the examples are loaded.
 * @throws as `startProgram`, and FILE_CORRUPT for an invalid line.
 */
export async function startSftRun(options: SftRunOptions, folder: string, hooks: RunHooks = {}): Promise<SftRun> {
  return new OpenRun(await startProgram(sftProgram, options, folder, hooks));
}

/**
 * Resumes a run; `data` and `evalData` may name the same contents at another path.
 * @throws as `resumeProgram`, FILE_NOT_FOUND for missing data, RUN_INCOMPATIBLE for data that has
 * changed.
 */
export async function resumeSftRun(
  folder: string,
  changes: Partial<SftRunOptions> = {},
  hooks: RunHooks = {},
): Promise<SftRun> {
  return new OpenRun(await resumeProgram(sftProgram, folder, changes, hooks));
}

async function createTrainer(config: SftRunConfig, model: LanguageModel) {
  const { examples: train, evalExamples: evaluation, ...read } = await loadExamples(config, model, readExamples);
  return { trainer: await SftTrainer.create(model, { ...getSftConfig(config), train, evaluation }), ...read };
}
