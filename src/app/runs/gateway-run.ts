import { join } from "node:path";
import { invalidArgument } from "../../core/errors.js";
import { filterSettings, selectScope, selectSettings, type SettingTable } from "../../core/settings.js";
import type { TrainResult } from "../../rl/train/train-loop.js";
import type { TrainCallbacks } from "../../rl/train/trainer.js";
import type { FolderLock } from "../../models/files/index.js";
import { gatewaySettings } from "../gateway/gateway-settings.js";
import { GatewayTrainer, type GatewayTrainerOptions } from "../gateway/gateway-trainer.js";
import { EpisodeJudge } from "../judge/episode-judge.js";
import { resolveWandbConfig } from "../tracking/index.js";
import { configureAlgorithm } from "./algorithm-settings.js";
import { checkRunSize } from "./check-run-size.js";
import { estimateRunMemory } from "./estimate-run-memory.js";
import { findAlgorithm, loadAlgorithm } from "./load-algorithm.js";
import { openRunModel } from "./open-model.js";
import { ADAPTER_FOLDER, checkUnchanged, GATEWAY_ENV, type RunOptions } from "./run.js";
import { takeControlRequests } from "./run-control.js";
import { getCheckpointDir, requireRunConfig } from "../../rl/train/run-config.js";
import { checkNewRunFolder, checkWritable, openLocked } from "./run-folder.js";
import { RunRecords } from "./run-records.js";
import { resolveTrainConfig, runSettings, trainSettingsOf, type TrainConfig } from "./run-settings.js";

export type GatewayRunOptions = Partial<Omit<TrainConfig, "env" | "envOptions">>;

type GatewayServerOptions = Pick<GatewayTrainerOptions, "host" | "port" | "apiKey" | "sessionTimeoutSeconds">;

export interface GatewayRunHooks extends Omit<RunOptions, "workers"> {
  /** Where the gateway listens; not part of the run's config. */
  readonly server?: GatewayServerOptions;
}

/** An open run that trains on the sessions of other processes. */
export interface GatewayRun {
  readonly config: TrainConfig;
  readonly folder: string;
  /** Address of the gateway. */
  readonly url: string;
  readonly isResumed: boolean;
  /** Updates made before the run was resumed; 0 without a checkpoint. */
  readonly resumedAt: number;
  train(callbacks?: Pick<TrainCallbacks, "onProgress" | "signal">): Promise<TrainResult>;
  /** Saves the trained parameters to FOLDER/adapter and returns that path. */
  saveAdapter(): Promise<string>;
  close(): Promise<void>;
}

/** Returns the settings of a run on a gateway, with those of its algorithm. */
export function gatewayRunSettingsOf(algorithm?: string): SettingTable {
  const turns = { ...gatewaySettings.turns, group: "Run" };
  const settings: SettingTable = { ...trainSettingsOf(algorithm), turns };
  return {
    ...selectScope(settings, "model", "algorithm", "run"),
    ...filterSettings(settings, (_, name) => Object.hasOwn(gatewaySettings, name)),
  };
}

/** Starts a run in a new folder and its gateway. Nothing is written before both are open. @throws as `startRun`, and as `createGateway`. */
export async function startGatewayRun(
  options: GatewayRunOptions,
  folder: string,
  hooks: GatewayRunHooks = {},
): Promise<GatewayRun> {
  const { algorithm } = options;
  const named = algorithm === undefined ? options : { ...options, algorithm: await loadAlgorithm(algorithm) };
  const config = resolveTrainConfig({ ...named, env: GATEWAY_ENV });
  checkRunSize(config, options);
  return openLocked(folder, checkNewRunFolder, async (lock) => openRun(config, lock, hooks, false));
}

/** Resumes a run from its newest checkpoint, or from its start if it has none. @throws as `resumeRun`, and as `createGateway`. */
export async function resumeGatewayRun(
  folder: string,
  changes: GatewayRunOptions = {},
  hooks: GatewayRunHooks = {},
): Promise<GatewayRun> {
  const saved = await requireRunConfig<TrainConfig>(folder);
  if (saved.env !== GATEWAY_ENV)
    throw invalidArgument(`The run in ${folder} is not one of a gateway. Resume it with the command that started it.`);
  if (saved.algorithm !== undefined) await loadAlgorithm(saved.algorithm);
  checkUnchanged(runSettings, resolveTrainConfig(saved, { isResolved: true }), changes, folder);
  const config = resolveTrainConfig({ ...saved, ...changes }, { isResolved: true });
  checkRunSize(config);
  return openLocked(folder, checkWritable, async (lock) => openRun(config, lock, hooks, true));
}

async function openRun(
  config: TrainConfig,
  lock: FolderLock,
  { server, trackers = [], onDownload, onWarning = () => {}, onInfo }: GatewayRunHooks,
  isResumed: boolean,
): Promise<GatewayRun> {
  const { folder } = lock;
  const { valueHead: kind, valueHeadDropout: dropout } = config;
  const wandb = resolveWandbConfig({ project: config.wandbProject, mode: config.wandbMode });
  const memoryEstimate = await estimateRunMemory(config);
  if (memoryEstimate?.warning !== undefined) onWarning(memoryEstimate.warning);
  const judge = EpisodeJudge.create(config, onWarning);
  const valueHead = findAlgorithm(config.algorithm).hasCritic ? { kind, dropout } : null;
  const model = await openRunModel(config, { valueHead, onDownload });
  let trainer: GatewayTrainer | undefined;
  try {
    let records: RunRecords | undefined;
    const opened = new GatewayTrainer({
      ...selectSettings(gatewaySettings, config),
      ...configureAlgorithm(config),
      ...server,
      model,
      sessionReward: judge && (({ messages }) => judge.score(messages)),
      checkpointDir: getCheckpointDir(folder),
      lock,
      onWarning: (message) => {
        records?.log.warning(message, "metrics");
        onWarning(message);
      },
    });
    trainer = opened;
    const resumedAt = isResumed ? await opened.resume() : 0;
    const url = await opened.listen();
    const saved = { ...selectSettings(gatewayRunSettingsOf(config.algorithm), config), env: GATEWAY_ENV };
    const recordOptions = {
      saved,
      wandb,
      trackers,
      judge,
      onWarning,
      onInfo,
      resumedAt: isResumed ? resumedAt : undefined,
    };
    const openRecords = await RunRecords.open(folder, config, recordOptions);
    records = openRecords;
    return {
      config,
      folder,
      url,
      isResumed,
      resumedAt,
      train: async (callbacks) => {
        const onUpdate = async () => takeControlRequests(folder, openRecords.log, refuseChange);
        const { tracker } = openRecords;
        const options = { ...callbacks, tracker, onUpdate };
        return openRecords.watch(opened.train(options));
      },
      saveAdapter: async () => {
        const path = join(folder, ADAPTER_FOLDER);
        await lock.verify();
        await model.savePretrained(path);
        return path;
      },
      close: async () => {
        await opened.close();
        await openRecords.close();
        await judge?.close();
        await model.close();
        await lock.release();
      },
    };
  } catch (error) {
    await trainer?.close();
    await model.close();
    throw error;
  }
}

async function refuseChange(name: string): Promise<never> {
  throw invalidArgument(`${name} of a gateway's run changes when it is resumed.`);
}
