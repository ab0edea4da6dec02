import { invalidArgument } from "../../core/errors.js";
import { checkOptions, type OptionNames, selectSettings } from "../../core/settings.js";
import type { Env } from "../../envs/index.js";
import type { LanguageModel } from "../../generation/index.js";
import type { TextAgent } from "../../rl/agent/index.js";
import { describeSkippedRows } from "../../rl/data/index.js";
import { Trainer, type TrainCallbacks, trainerSettings } from "../../rl/train/index.js";
import type { GradientTransport } from "../../rl/algorithms/index.js";
import type { RolloutTransport } from "../../rl/rollout/index.js";
import { withJudge } from "../judge/judged-env.js";
import { checkRunSize } from "./check-run-size.js";
import { checkService } from "./check-service.js";
import { EnvSupply } from "./env-supply.js";
import { hashNamedFiles, reportChangedFiles } from "./hash-files.js";
import { findAlgorithm, isBuiltInAlgorithm, loadAlgorithm } from "./load-algorithm.js";
import { makeTextAgent, readNewTextEnv, readTextEnv, type TextEnv } from "./make-text-agent.js";
import {
  OpenRun,
  resumeProgram,
  startProgram,
  type OpenedRun,
  type RunContext,
  type RunHooks,
  type RunProgram,
} from "./open-run.js";
import { openTeacher } from "./open-teacher.js";
import { describeExtrapolatedRate } from "./pretrained-defaults.js";
import { resolveWarmStart } from "./resolve-warm-start.js";
import { RunEnv } from "./run-env.js";
import { resolveTrainConfig, runSettings, type TrainConfig, type TrainOptions } from "./run-settings.js";

/** Options of `startRun` and `resumeRun`. */
export interface RunOptions extends RunHooks {
  /** Opens the transport to workers, which collect rollouts in place of this process. */
  readonly openTransport?: OpenTransport;
}

const runOptionNames: OptionNames<RunOptions> = {
  trackers: true,
  onDownload: Function,
  onWarning: Function,
  onInfo: Function,
  openTransport: true,
};

/** Opens the transport of a run in a folder. */
export type OpenTransport = (
  folder: string,
  run: { readonly config: TrainConfig; readonly model: LanguageModel; readonly onWarning: (message: string) => void },
) => Promise<RolloutTransport & GradientTransport>;

interface OpenedTraining extends OpenedRun<TrainConfig, Omit<TrainCallbacks, "tracker">> {
  readonly agent: TextAgent;
  readonly trainer: Trainer;
  readonly makeEnv: () => Promise<Env>;
}

/** An open training run in an environment. */
export class Run extends OpenRun<TrainConfig, OpenedTraining> {
  get agent(): TextAgent {
    return this.opened.agent;
  }

  /** Opens another environment of the run. */
  get makeEnv(): () => Promise<Env> {
    return this.opened.makeEnv;
  }

  /**
   * Whether each update is followed by one on the best episodes. Can be changed during training.
   */
  get onlineSft(): boolean {
    return this.opened.trainer.onlineSft;
  }

  set onlineSft(enabled: boolean) {
    this.opened.trainer.onlineSft = enabled;
  }
}

type TrainContext = RunContext<TrainOptions, TrainConfig, RunOptions>;

const trainProgram: RunProgram<TrainOptions, TrainConfig, RunOptions, OpenedTraining> = {
  command: "train",
  resultFolder: "adapter",
  settings: runSettings,
  resolve: resolveAndCheck,
  open: openTraining,
};

/**
 * Starts a run in a new folder. Nothing is written before the model and the environment are open.
 * @throws INVALID_ARGUMENT for invalid settings, INVALID_STATE for a folder that contains a run,
 * FOLDER_IN_USE, FILE_WRITE_FAILED, and what opening the model and the environment throws.
 */
export async function startRun(options: TrainOptions, folder: string, runOptions: RunOptions = {}): Promise<Run> {
  checkOptions("startRun", runOptions, runOptionNames);
  return new Run(await startProgram(trainProgram, options, folder, runOptions));
}

/**
 * Resumes a run from its newest checkpoint, or from its start if it has none. Only settings that
 * are `changeable` may change.
 * @throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for a run of another version,
 * INVALID_ARGUMENT for other changes, and what `startRun` throws.
 */
export async function resumeRun(
  folder: string,
  changes: Partial<TrainOptions> = {},
  runOptions: RunOptions = {},
): Promise<Run> {
  checkOptions("resumeRun", runOptions, runOptionNames);
  return new Run(await resumeProgram(trainProgram, folder, changes, runOptions));
}

/** Resolves options without the environment, which decides some defaults when it is open. */
async function resolveAndCheck(options: TrainOptions, isResolved: boolean): Promise<TrainConfig> {
  const config = resolveTrainConfig(await loadAlgorithmOf(options), { isResolved });
  checkRunSize(config, isResolved ? {} : options);
  return config;
}

async function loadAlgorithmOf(options: TrainOptions): Promise<TrainOptions> {
  const { algorithm } = options;
  return algorithm === undefined ? options : { ...options, algorithm: await loadAlgorithm(algorithm) };
}

/** @throws INVALID_ARGUMENT for what workers cannot compute, and without workers. */
function checkGradientWorkers(config: TrainConfig, hasWorkers: boolean): void {
  const dropout = (["loraDropout", "valueHeadDropout"] as const).find((name) => config[name] > 0);
  const problem = !hasWorkers
    ? "needs workers: give --redis URL or --workers-folder FOLDER, or --no-gradient-workers"
    : !isBuiltInAlgorithm(config.algorithm)
      ? "needs an algorithm of the package, because workers load no modules: leave it out, or choose another algorithm"
      : dropout !== undefined
        ? `cannot train with dropout, whose noise the learner draws: set \`${dropout}\` to 0`
        : undefined;
  if (problem !== undefined) throw invalidArgument(`\`gradientWorkers\` ${problem}.`);
}

async function openTraining(context: TrainContext): Promise<OpenedTraining> {
  const { saved, hooks, judge, checkpointDir, lock, onWarning, defer } = context;
  const { openTransport } = hooks;
  if (judge !== undefined && openTransport !== undefined)
    throw invalidArgument("A judge scores in this process: leave it out, or collect rollouts without workers.");
  if (context.config.gradientWorkers) checkGradientWorkers(context.config, openTransport !== undefined);
  const env = new RunEnv(context.config);
  const envs = new EnvSupply(env, (opened) => withJudge(opened, judge));
  defer(async () => envs.close());
  const { config: settings, textEnv } = await readEnv(context, envs);
  const filesSha256 = await hashNamedFiles(settings);
  reportChangedFiles(saved?.filesSha256, filesSha256, onWarning);
  const config = Object.keys(filesSha256).length === 0 ? settings : { ...settings, filesSha256 };
  checkService(config);
  if (config.backend === "tinker" && openTransport !== undefined)
    throw invalidArgument("Workers sample with the engine: leave them out, or set `backend` to engine.");
  const rateNote = saved === undefined ? describeExtrapolatedRate(config) : undefined;
  if (rateNote !== undefined) hooks.onInfo?.(rateNote);
  const sftWarmStart = await resolveWarmStart(config, env);
  const { valueHead: kind, valueHeadDropout: dropout } = config;
  const model = await context.openModel(config, findAlgorithm(config.algorithm).hasCritic ? { kind, dropout } : null);
  const teacher = await openTeacher(config, { onDownload: hooks.onDownload, defer });
  const agent = makeTextAgent(model, textEnv, { ...config, sftWarmStart }, teacher);
  if (saved === undefined)
    for (const warning of describeSkippedRows((await agent.loadDemonstrations()).rejected)) onWarning(warning);
  await agent.getLearner();
  const transport = await openTransport?.(lock.folder, { config, model, onWarning });
  if (transport !== undefined) defer(async (isFinished) => transport.close(isFinished));
  const trainer = new Trainer({
    ...selectSettings(trainerSettings, config),
    agent,
    env: envs.make,
    rollouts: config.rollouts,
    checkpointDir,
    lock,
    transport,
    gradientTransport: config.gradientWorkers ? transport : undefined,
    onWarning,
  });
  defer(async () => trainer.close());
  const resumedAt = saved === undefined ? 0 : await trainer.resume();
  await trainer.open();
  return {
    config,
    model,
    agent,
    trainer,
    makeEnv: envs.make,
    resumedAt,
    hasCheckpoint: trainer.restoredCheckpoint !== undefined,
    resumesWarmStart: trainer.resumesWarmStart,
    train: async (callbacks) => trainer.train(callbacks),
    change: (changed) => {
      checkRunSize(changed);
      trainer.setLength({ episodes: changed.episodes, turns: changed.turns });
    },
  };
}

/**
 * Reads the text interface of the first environment, and for a new run the defaults that follow
 * from it.
 */
async function readEnv(
  { config: resolved, options, saved, hooks, onWarning }: TrainContext,
  envs: EnvSupply,
): Promise<{ readonly config: TrainConfig; readonly textEnv: TextEnv }> {
  if (saved !== undefined) return { config: resolved, textEnv: await envs.read(readTextEnv) };
  const textEnv = await envs.read(async (env, name) => readNewTextEnv(env, name, resolved, onWarning));
  const config = resolveTrainConfig(await loadAlgorithmOf(options), { envTraits: textEnv });
  const isDeclared = (textEnv.text.historyTurns ?? options.historyTurns) !== undefined;
  if (!isDeclared && textEnv.historyTurns > 0)
    hooks.onInfo?.(
      `Random play shows that an observation matters up to ${config.historyTurns} turns later, so prompts contain ` +
        `${config.historyTurns} earlier turns (historyTurns).`,
    );
  return { config, textEnv };
}
