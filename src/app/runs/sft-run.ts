import type { LanguageModel } from "../../generation/index.js";
import type { SftEvaluation, SftMetrics } from "../../rl/algorithms/index.js";
import { readExamples } from "../../rl/data/index.js";
import { SftTrainer } from "../../rl/train/index.js";
import { loadExamples, promptFormat } from "./load-examples.js";
import { openExampleRun, type OpenedExampleRun } from "./open-example-run.js";
import { resumeProgram, startProgram, OpenRun, type RunContext, type RunHooks, type RunProgram } from "./open-run.js";
import {
  allSftRunSettings,
  dataSettings,
  getSftConfig,
  resolveSftRunConfig,
  type SftRunConfig,
  type SftRunOptions,
} from "./sft-run-settings.js";
import { removeTeacherCompletions, writeTeacherCompletions } from "./teacher-completions.js";

/** The open trainer of supervised fine-tuning. */
export type OpenedSftRun = OpenedExampleRun<SftRunConfig, SftTrainer, SftMetrics, SftEvaluation>;

type SftContext = RunContext<SftRunOptions, SftRunConfig, RunHooks>;

/** An open run of supervised fine-tuning. */
export type SftRun = OpenRun<SftRunConfig, OpenedSftRun>;

const sftProgram: RunProgram<SftRunOptions, SftRunConfig, RunHooks, OpenedSftRun> = {
  command: "sft",
  resultFolder: "model",
  settings: { ...dataSettings, ...allSftRunSettings },
  resolve: resolveSftRunConfig,
  open,
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

async function open(context: SftContext): Promise<OpenedSftRun> {
  const { saved, lock, hooks } = context;
  const loadData = async (config: SftRunConfig, model: LanguageModel) => {
    if (config.teacher === undefined) return config.data;
    const target = { folder: lock.folder, isResumed: saved !== undefined, prompts: promptFormat(config, model) };
    return writeTeacherCompletions({ ...config, ...hooks }, { ...target, onWarning: context.onWarning });
  };
  try {
    return await openExampleRun(context, async (config, model) => {
      const data = await loadData(config, model);
      const {
        examples: train,
        evalExamples: evaluation,
        ...read
      } = await loadExamples({ ...config, data }, model, readExamples);
      return { trainer: await SftTrainer.create(model, { ...getSftConfig(config), train, evaluation }), ...read };
    });
  } catch (error) {
    if (saved === undefined) await removeTeacherCompletions(lock.folder);
    throw error;
  }
}
