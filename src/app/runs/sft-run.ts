import { readExamples, type InvalidLine } from "../../rl/data/index.js";
import { SftTrainer, type SftTrainOptions } from "../../rl/train/index.js";
import { checkService } from "./check-service.js";
import { hashExamples, loadExamples } from "./load-examples.js";
import {
  resumeProgram,
  startProgram,
  OpenRun,
  type OpenedRun,
  type RunContext,
  type RunHooks,
  type RunProgram,
} from "./open-run.js";
import {
  allSftRunSettings,
  dataSettings,
  getSftConfig,
  resolveSftRunConfig,
  type SftRunConfig,
  type SftRunOptions,
} from "./sft-run-settings.js";

type SftRunCallbacks = Pick<SftTrainOptions, "onStep" | "onEvaluation" | "signal">;

/** The open trainer of supervised fine-tuning. */
export interface OpenedSftRun extends OpenedRun<SftRunConfig, SftRunCallbacks> {
  readonly trainer: SftTrainer;
  readonly invalidLines: readonly InvalidLine[];
  /** Columns of the data that are not part of any example. */
  readonly unusedColumns: readonly string[];
}

type SftContext = RunContext<SftRunOptions, SftRunConfig, RunHooks>;

/** An open run of supervised fine-tuning. */
export type SftRun = OpenRun<SftRunConfig, OpenedSftRun>;

const sftProgram: RunProgram<SftRunOptions, SftRunConfig, RunHooks, OpenedSftRun> = {
  command: "sft",
  resultFolder: "model",
  settings: { ...dataSettings, ...allSftRunSettings },
  resolve: resolveSftRunConfig,
  open: openSft,
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

async function openSft(context: SftContext): Promise<OpenedSftRun> {
  const { saved, checkpointDir, lock, hooks } = context;
  checkService(context.config);
  const config = await hashExamples(context);
  const model = await context.openModel("saved");
  const { examples: train, evalExamples: evaluation, ...read } = await loadExamples(config, model, readExamples);
  const trainer = await SftTrainer.create(model, { ...getSftConfig(config), train, evaluation });
  context.defer(async () => trainer.release());
  const resumedAt = saved !== undefined ? await trainer.resume(checkpointDir, hooks.onWarning) : 0;
  const { saveSteps, evalSteps } = config;
  return {
    config,
    model,
    trainer,
    ...read,
    resumedAt,
    hasCheckpoint: resumedAt > 0,
    train: async (callbacks) => trainer.train({ checkpointDir, lock, saveSteps, evalSteps, ...callbacks }),
  };
}
