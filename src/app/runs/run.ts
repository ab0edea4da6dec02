import { join } from "node:path";
import type { TextAgent } from "../../rl/agent/text-agent.js";
import type { Env } from "../../envs/env.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { filterSettings, selectSettings, type SettingTable } from "../../core/settings.js";
import type { DownloadProgress, FolderLock } from "../../models/files/index.js";
import type { TrackerSource } from "../../rl/tracking/index.js";
import { EpisodeJudge } from "../judge/episode-judge.js";
import { withJudge } from "../judge/judged-env.js";
import { resolveWandbConfig } from "../tracking/index.js";
import { makeTextAgent, readNewTextEnv, requireTextEnv, type TextEnv } from "./make-text-agent.js";
import { checkRunSize } from "./check-run-size.js";
import { estimateRunMemory } from "./estimate-run-memory.js";
import { findAlgorithm, isBuiltInAlgorithm, loadAlgorithm } from "./load-algorithm.js";
import { openRunModel } from "./open-model.js";
import { takeControlRequests } from "./run-control.js";
import { getCheckpointDir, requireRunConfig, writeRunConfig } from "../../rl/train/run-config.js";
import { checkNewRunFolder, checkWritable, openLocked } from "./run-folder.js";
import { RunEnv } from "./run-env.js";
import { RunRecords } from "./run-records.js";
import { resolveTrainConfig, runSettings, type TrainConfig, type TrainOptions } from "./run-settings.js";
import { resolveWarmStart } from "./resolve-warm-start.js";
import type { GradientTransport } from "../../rl/algorithms/update/gradient-transport.js";
import type { RolloutTransport } from "../../rl/rollout/rollout-job.js";
import type { WorkersAddress } from "../distributed/open-transport.js";
import type { TrainRequests, TrainResult } from "../../rl/train/train-loop.js";
import { Trainer, type TrainCallbacks } from "../../rl/train/trainer.js";
import { loopSettings, trainerSettings } from "../../rl/train/trainer-settings.js";

/** Folder of the trained adapter or weights in a run folder. */
export const ADAPTER_FOLDER = "adapter";

/** In place of the environment in the config of a gateway's run. */
export const GATEWAY_ENV = "gateway";

/** Options of `startRun` and `resumeRun`. */
export interface RunOptions {
  /** Additional trackers. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Receives warnings that do not stop the run. */
  readonly onWarning?: (message: string) => void;
  /** Receives information, such as the address at which W&B shows the run. */
  readonly onInfo?: (message: string) => void;
  /** Collects rollouts on these workers instead of in this process. */
  readonly workers?: WorkersAddress;
}

/** An open training run. */
export interface Run {
  readonly config: TrainConfig;
  readonly folder: string;
  readonly agent: TextAgent;
  train(callbacks?: Omit<TrainCallbacks, "tracker">): Promise<TrainResult>;
  readonly isResumed: boolean;
  /** Updates made before the run was resumed; 0 without a checkpoint, or with the one after the warm start. */
  readonly resumedAt: number;
  /** Whether the run continues from a checkpoint. */
  readonly hasCheckpoint: boolean;
  /** Whether each update is followed by one on the best episodes. Can be changed during training. */
  onlineSft: boolean;
  readonly makeEnv: () => Promise<Env>;
  /** Saves the trained parameters to FOLDER/adapter and returns that path. */
  saveAdapter(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Starts a run in a new folder. Nothing is written before the model and the environment are open.
 * @throws INVALID_ARGUMENT for invalid settings, INVALID_STATE for a folder that contains a run, FOLDER_IN_USE, FILE_WRITE_FAILED, and what
 * opening the model and the environment throws.
 */
export async function startRun(options: TrainOptions, folder: string, runOptions: RunOptions = {}): Promise<Run> {
  const { algorithm } = options;
  const given = algorithm === undefined ? options : { ...options, algorithm: await loadAlgorithm(algorithm) };
  const envConfig = resolveTrainConfig(given);
  checkRunSize(envConfig, options);
  const env = new RunEnv(envConfig);
  return openLocked(folder, checkNewRunFolder, async (lock) => {
    const textEnv = await readNewTextEnv(env, envConfig);
    const config = resolveTrainConfig(given, { envTraits: textEnv });
    if (config.historyTurns > (textEnv.text.historyTurns ?? options.historyTurns ?? 0))
      runOptions.onInfo?.(
        `Random play shows that an observation matters up to ${config.historyTurns} turns later, so prompts contain ` +
          `${config.historyTurns} earlier turns (historyTurns).`,
      );
    return openRun(config, lock, runOptions, false, textEnv);
  });
}

/**
 * Resumes a run from its newest checkpoint, or from its start if it has none. Only settings that are `changeable` may change.
 * @throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for a run of another version, INVALID_ARGUMENT for other
 * changes, and what `startRun` throws.
 */
export async function resumeRun(
  folder: string,
  changes: Partial<TrainOptions> = {},
  runOptions: RunOptions = {},
): Promise<Run> {
  const saved = await requireRunConfig<TrainOptions>(folder);
  if (saved.env === GATEWAY_ENV)
    throw invalidArgument(
      `The run in ${folder} is one of a gateway. Resume it with: llamagym gateway --resume ${folder}`,
    );
  if (saved.algorithm !== undefined) await loadAlgorithm(saved.algorithm);
  checkUnchanged(runSettings, resolveTrainConfig(saved, { isResolved: true }), changes, folder);
  const config = resolveTrainConfig({ ...saved, ...changes }, { isResolved: true });
  checkRunSize(config);
  return openLocked(folder, checkWritable, async (lock) => openRun(config, lock, runOptions, true));
}

/** Returns the names of the settings that may change when a run is resumed. */
export function listChangeable(table: SettingTable): readonly string[] {
  return Object.keys(filterSettings(table, ({ changeable }) => changeable !== undefined));
}

/** Checks that a resumed run changes only some settings. @throws INVALID_ARGUMENT */
export function checkUnchanged<Config extends object>(
  table: SettingTable,
  config: Config,
  changes: Partial<Config>,
  folder: string,
): void {
  const changeable = listChangeable(table);
  for (const name of Object.keys(changes) as (keyof Config & string)[]) {
    const [before, after] = [config[name], changes[name]].map((value) => JSON.stringify(value));
    if (before === after || changeable.includes(name)) continue;
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `The run in ${folder} has ${name} ${before ?? "not set"}, which cannot change to ${after ?? "not set"} on resume. ` +
        `Omit it, or start a new run in another folder. What can be changed: ${changeable.join(", ")}.`,
    );
  }
}

/** @throws INVALID_ARGUMENT for what workers cannot compute, and without workers. */
function checkGradientWorkers(config: TrainConfig, workers: WorkersAddress | undefined): void {
  const dropout = (["loraDropout", "valueHeadDropout"] as const).find((name) => config[name] > 0);
  const problem =
    workers === undefined
      ? "needs workers: give --redis URL or --workers-folder FOLDER, or --no-gradient-workers"
      : !isBuiltInAlgorithm(config.algorithm)
        ? "needs an algorithm of the package, because workers load no modules: leave it out, or choose another algorithm"
        : dropout !== undefined
          ? `cannot train with dropout, whose noise the learner draws: set \`${dropout}\` to 0`
          : undefined;
  if (problem !== undefined) throw invalidArgument(`\`gradientWorkers\` ${problem}.`);
}

async function openRun(
  config: TrainConfig,
  lock: FolderLock,
  { trackers = [], onDownload, onWarning = () => {}, onInfo, workers }: RunOptions,
  isResumed: boolean,
  openedEnv?: TextEnv,
): Promise<Run> {
  const { folder } = lock;
  const { rollouts } = config;
  const wandb = resolveWandbConfig({ project: config.wandbProject, mode: config.wandbMode });
  const judge = EpisodeJudge.create(config, onWarning);
  if (judge !== undefined && workers !== undefined)
    throw invalidArgument("A judge scores in this process: leave it out, or collect rollouts without workers.");
  if (config.gradientWorkers) checkGradientWorkers(config, workers);
  const env = new RunEnv(config);
  const makeEnv = async () => withJudge(await env.open(), judge);
  const textEnv = openedEnv ?? (await requireTextEnv(makeEnv, env.id));
  const sftWarmStart = await resolveWarmStart(config, env);
  const memoryEstimate = await estimateRunMemory(config);
  if (memoryEstimate?.warning !== undefined) onWarning(memoryEstimate.warning);
  else if (memoryEstimate !== undefined) onInfo?.(memoryEstimate.text);
  const { valueHead: kind, valueHeadDropout: dropout } = config;
  const valueHead = findAlgorithm(config.algorithm).hasCritic ? { kind, dropout } : null;
  const model = await openRunModel(config, { valueHead, onDownload });
  let trainer: Trainer | undefined;
  let transport: (RolloutTransport & GradientTransport) | undefined;
  try {
    const agent = makeTextAgent(model, textEnv, { ...config, sftWarmStart });
    if (!isResumed) for (const reason of (await agent.loadDemonstrations()).rejected) onWarning(reason);
    await agent.getLearner();
    const checkpointDir = getCheckpointDir(folder);
    let records: RunRecords | undefined;
    const onTrainerWarning = (message: string) => {
      records?.log.warning(message, "metrics");
      onWarning(message);
    };
    if (workers !== undefined) {
      const { openTransport } = await import("../distributed/open-transport.js");
      transport = await openTransport(workers, folder, { config, model, onWarning: onTrainerWarning });
    }
    const gradientTransport = config.gradientWorkers ? transport : undefined;
    trainer = new Trainer({
      ...selectSettings(trainerSettings, config),
      agent,
      env: makeEnv,
      rollouts,
      checkpointDir,
      lock,
      transport,
      gradientTransport,
      onWarning: onTrainerWarning,
    });
    const resumedAt = isResumed ? await trainer.resume() : 0;
    const hasCheckpoint = trainer.restoredCheckpoint !== undefined;
    const resumed = { resumedAt: isResumed ? resumedAt : undefined, hasCheckpoint };
    records = await RunRecords.open(folder, config, { wandb, trackers, judge, onWarning, onInfo, ...resumed });
    const state = { isResumed, resumedAt, hasCheckpoint };
    return new OpenRun(config, lock, agent, state, makeEnv, trainer, records, transport, judge);
  } catch (error) {
    await trainer?.close();
    await transport?.close();
    await model.close();
    throw error;
  }
}

class OpenRun implements Run {
  readonly isResumed: boolean;
  readonly resumedAt: number;
  readonly hasCheckpoint: boolean;

  constructor(
    private currentConfig: TrainConfig,
    private readonly lock: FolderLock,
    readonly agent: TextAgent,
    start: Pick<Run, "isResumed" | "resumedAt" | "hasCheckpoint">,
    readonly makeEnv: () => Promise<Env>,
    private readonly trainer: Trainer,
    private readonly records: RunRecords,
    private readonly transport: RolloutTransport | undefined,
    private readonly judge: EpisodeJudge | undefined,
  ) {
    ({ isResumed: this.isResumed, resumedAt: this.resumedAt, hasCheckpoint: this.hasCheckpoint } = start);
  }

  get config(): TrainConfig {
    return this.currentConfig;
  }

  get folder(): string {
    return this.lock.folder;
  }

  get onlineSft(): boolean {
    return this.trainer.onlineSft;
  }

  set onlineSft(enabled: boolean) {
    this.trainer.onlineSft = enabled;
  }

  async train(callbacks: Omit<TrainCallbacks, "tracker"> = {}): Promise<TrainResult> {
    const training = this.trainer.train({
      ...callbacks,
      onUpdate: async (event) => ({ ...(await callbacks.onUpdate?.(event)), ...(await this.takeRequests()) }),
      tracker: this.records.tracker,
    });
    return this.records.watch(training);
  }

  async saveAdapter(): Promise<string> {
    const path = join(this.folder, ADAPTER_FOLDER);
    await this.lock.verify();
    await this.agent.save(path);
    return path;
  }

  async close(): Promise<void> {
    await this.trainer.close();
    await this.transport?.close(this.records.isFinished);
    await this.records.close();
    await this.judge?.close();
    await this.agent.model.close();
    await this.lock.release();
  }

  /** Carries out what was requested in the run folder. */
  private async takeRequests(): Promise<TrainRequests> {
    return takeControlRequests(this.folder, this.records.log, async (name, value) => {
      const config = resolveTrainConfig({ ...this.currentConfig, [name]: value }, { isResolved: true });
      checkRunSize(config);
      this.trainer.setLength({ episodes: config.episodes, turns: config.turns });
      await writeRunConfig(this.folder, config);
      this.currentConfig = config;
      return { options: selectSettings(loopSettings, config) };
    });
  }
}
