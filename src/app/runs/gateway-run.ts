import { filterSettings, selectScope, selectSettings, type SettingTable } from "../../core/settings.js";
import type { TrainCallbacks } from "../../rl/train/index.js";
import { gatewaySettings } from "../gateway/gateway-settings.js";
import { GatewayTrainer, type GatewayTrainerOptions } from "../gateway/gateway-trainer.js";
import { configureAlgorithm } from "./algorithm-settings.js";
import { checkRunSize } from "./check-run-size.js";
import { checkService } from "./check-service.js";
import { GATEWAY_ENV } from "./find-run-command.js";
import { findAlgorithm, loadAlgorithm } from "./load-algorithm.js";
import {
  OpenRun,
  resumeProgram,
  startProgram,
  type OpenedRun,
  type RunContext,
  type RunHooks,
  type RunProgram,
} from "./open-run.js";
import { resolveTrainConfig, runSettings, trainSettingsOf, type TrainConfig } from "./run-settings.js";

export type GatewayRunOptions = Partial<Omit<TrainConfig, "env" | "envOptions">>;

type GatewayServerOptions = Pick<GatewayTrainerOptions, "host" | "port" | "apiKey" | "sessionTimeoutSeconds">;

export interface GatewayRunHooks extends RunHooks {
  /** Where the gateway listens; not part of the run's config. */
  readonly server?: GatewayServerOptions;
}

interface OpenedGateway extends OpenedRun<TrainConfig, Pick<TrainCallbacks, "onProgress" | "signal">> {
  /** Address of the gateway. */
  readonly url: string;
}

/** An open run that trains on the sessions of other processes. */
export type GatewayRun = OpenRun<TrainConfig, OpenedGateway>;

const gatewayProgram: RunProgram<GatewayRunOptions, TrainConfig, GatewayRunHooks, OpenedGateway> = {
  command: "gateway",
  resultFolder: "adapter",
  settings: runSettings,
  resolve: async ({ algorithm, ...options }, isResolved) => {
    const named = algorithm === undefined ? {} : { algorithm: await loadAlgorithm(algorithm) };
    const config = resolveTrainConfig({ ...options, ...named, env: GATEWAY_ENV }, { isResolved });
    checkRunSize(config, isResolved ? {} : options);
    return config;
  },
  toJson: (config) => ({ ...selectSettings(gatewayRunSettingsOf(config.algorithm), config), env: GATEWAY_ENV }),
  open: openGateway,
};

/** Returns the settings of a run on a gateway, with those of its algorithm. */
export function gatewayRunSettingsOf(algorithm?: string): SettingTable {
  const turns = { ...gatewaySettings.turns, group: "Run" };
  const settings: SettingTable = { ...trainSettingsOf(algorithm), turns };
  return {
    ...selectScope(settings, "model", "algorithm", "run"),
    ...filterSettings(settings, (_, name) => Object.hasOwn(gatewaySettings, name)),
  };
}

/**
 * Starts a run in a new folder and its gateway. Nothing is written before both are open. @throws as
 * `startRun`, and as `createGateway`.
 */
export async function startGatewayRun(
  options: GatewayRunOptions,
  folder: string,
  hooks: GatewayRunHooks = {},
): Promise<GatewayRun> {
  return new OpenRun(await startProgram(gatewayProgram, options, folder, hooks));
}

/**
 * Resumes a run from its newest checkpoint, or from its start if it has none. @throws as
 * `resumeRun`, and as `createGateway`.
 */
export async function resumeGatewayRun(
  folder: string,
  changes: GatewayRunOptions = {},
  hooks: GatewayRunHooks = {},
): Promise<GatewayRun> {
  return new OpenRun(await resumeProgram(gatewayProgram, folder, changes, hooks));
}

async function openGateway(
  context: RunContext<GatewayRunOptions, TrainConfig, GatewayRunHooks>,
): Promise<OpenedGateway> {
  const { config, hooks, judge, saved, checkpointDir, lock, onWarning, defer } = context;
  checkService(config);
  const { valueHead: kind, valueHeadDropout: dropout } = config;
  const model = await context.openModel(config, findAlgorithm(config.algorithm).hasCritic ? { kind, dropout } : null);
  const trainer = new GatewayTrainer({
    ...selectSettings(gatewaySettings, config),
    ...configureAlgorithm(config),
    ...hooks.server,
    model,
    sessionReward: judge && (({ messages }) => judge.score(messages)),
    checkpointDir,
    lock,
    onWarning,
  });
  defer(async () => trainer.close());
  const resumedAt = saved === undefined ? 0 : await trainer.resume();
  const url = await trainer.listen();
  return {
    config,
    model,
    url,
    resumedAt,
    hasCheckpoint: resumedAt > 0,
    train: async (callbacks) => trainer.train(callbacks),
  };
}
