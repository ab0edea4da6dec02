import type { LanguageModel } from "../../generation/index.js";
import {
  type PromptAlgorithm,
  PromptTraining,
  type PromptTrainingRun,
  RewardScorer,
  type TrainResult,
} from "../../rl/train/index.js";
import { checkService } from "./check-service.js";
import { openTeacher } from "./open-teacher.js";
import { changedFileWarning, hashData, hashFile } from "./hash-files.js";
import { loadRewardFunctions, loadTools, parseExportReference } from "./load-exports.js";
import {
  resumeProgram,
  startProgram,
  type LoopHooks,
  OpenRun,
  type OpenedRun,
  type RunContext,
  type RunHooks,
  type RunProgram,
} from "./open-run.js";
import {
  getPromptConfig,
  parseRewardWeights,
  promptRunSettingsOf,
  resolvePromptRunConfig,
  type PromptRunConfig,
  type PromptRunOptions,
} from "./prompt-run-settings.js";

type PromptCallbacks = Pick<PromptTrainingRun, "onProgress" | "signal">;

/** The open trainer of a run on prompts. */
export interface OpenedPromptRun extends OpenedRun<PromptRunConfig, PromptCallbacks> {
  readonly totalSteps: number;
  readonly numPrompts: number;
}

type PromptContext = RunContext<PromptRunOptions, PromptRunConfig, RunHooks>;

/** An open run on prompts with reward functions. */
export type PromptRun = OpenRun<PromptRunConfig, OpenedPromptRun>;

/**
 * Starts a run on prompts in a new folder. @throws as `startProgram`, `loadRewardFunctions` and
 * `loadPromptDataset`
 */
export async function startPromptRun(
  options: PromptRunOptions,
  folder: string,
  hooks: RunHooks = {},
): Promise<PromptRun> {
  return new OpenRun(await startProgram(createProgram(options.algorithm), options, folder, hooks));
}

/**
 * Resumes a run on prompts, of which `data`, `rewardFuncs` and `tools` may have moved. Modules that
 * have changed are reported by a warning: the run then differs from an uninterrupted one.
 * @throws as `resumeProgram`, and RUN_INCOMPATIBLE for data that has changed
 */
export async function resumePromptRun(
  algorithm: PromptAlgorithm,
  folder: string,
  changes: Partial<PromptRunOptions> = {},
  hooks: RunHooks = {},
): Promise<PromptRun> {
  return new OpenRun(await resumeProgram(createProgram(algorithm), folder, changes, hooks));
}

function createProgram(
  algorithm: PromptAlgorithm,
): RunProgram<PromptRunOptions, PromptRunConfig, RunHooks, OpenedPromptRun> {
  return {
    command: algorithm,
    resultFolder: "adapter",
    settings: promptRunSettingsOf(algorithm),
    resolve: resolvePromptRunConfig,
    open: openTraining,
  };
}

async function hashFiles({ config, saved, lock, onWarning }: PromptContext): Promise<PromptRunConfig> {
  const savedData = saved && { folder: lock.folder, sha256: saved.dataSha256 };
  const dataSha256 = await hashData(config.data, "--data", savedData);
  return {
    ...config,
    dataSha256,
    rewardFuncsSha256: await hashModules("--reward-funcs", config.rewardFuncs, saved?.rewardFuncsSha256),
    toolsSha256: config.tools && (await hashModules("--tools", config.tools, saved?.toolsSha256)),
  };

  async function hashModules(
    option: string,
    references: readonly string[],
    savedSha256: readonly string[] | undefined,
  ): Promise<string[]> {
    const hashes: string[] = [];
    for (const [i, reference] of references.entries()) {
      const { path } = parseExportReference(reference);
      const sha256 = await hashFile(path, saved && ` If it was moved, give its new path with ${option} FILE.`);
      const before = savedSha256?.[i];
      if (before !== undefined && before !== sha256) onWarning(changedFileWarning(path));
      hashes.push(sha256);
    }
    return hashes;
  }
}

async function openTraining(context: PromptContext): Promise<OpenedPromptRun> {
  const { checkpointDir, lock, saved, onWarning } = context;
  checkService(context.config);
  const config = await hashFiles(context);
  const { data, algorithm, rewardTimeoutSeconds: timeoutSeconds } = config;
  const functions = config.rewardFuncs.length === 0 ? undefined : await loadRewardFunctions(config.rewardFuncs);
  const tools = config.tools && (await loadTools(config.tools));
  const rewardWeights = parseRewardWeights(config.rewardWeights);
  const scorer = new RewardScorer(functions, { rewardWeights, timeoutSeconds, onWarning });
  const model: LanguageModel = await context.openModel(config, null);
  const { defer, hooks } = context;
  const teacher = await openTeacher(config, { onDownload: hooks.onDownload, defer });
  const options = { algorithm, ...getPromptConfig(config), trainDataset: data, tools, scorer, teacher, onWarning };
  const training = await PromptTraining.open(model, options);
  context.defer(async () => training.release());
  const resumedAt = saved !== undefined ? await training.resume(checkpointDir) : 0;
  return {
    config,
    model,
    resumedAt,
    hasCheckpoint: resumedAt > 0,
    totalSteps: training.totalSteps,
    numPrompts: training.numPrompts,
    train: async (callbacks: PromptCallbacks & LoopHooks): Promise<TrainResult> =>
      training.train({ ...callbacks, checkpointDir, lock }),
  };
}
