import { join } from "node:path";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { filterSettings, selectSettings, type SettingTable, type Settings } from "../../core/settings.js";
import type { openTrainable, LanguageModel } from "../../generation/index.js";
import type { DownloadProgress } from "../../models/files/index.js";
import type { FolderLock } from "../../core/files/folder-lock.js";
import type { modelSettings, tuningSettings } from "../../models/index.js";
import type { serviceSettings } from "../../tinker/index.js";
import type { TrackerSource } from "../../rl/tracking/index.js";
import {
  getCheckpointDir,
  requireRunConfig,
  writeRunConfig,
  type TrainLoopOptions,
  type TrainResult,
  loopSettings,
  type recordingSettings,
} from "../../rl/train/index.js";
import { EpisodeJudge } from "../judge/episode-judge.js";
import type { JudgeConfig } from "../judge/judge-settings.js";
import { resolveWandbConfig } from "../tracking/index.js";
import { estimateRunMemory } from "./estimate-run-memory.js";
import { findRunCommand, type RunCommand } from "./find-run-command.js";
import { openRunModel } from "./open-model.js";
import { takeControlRequests } from "./run-control.js";
import type { EnvConfig } from "./run-env.js";
import { checkNewRunFolder, checkWritable, openLocked } from "./run-folder.js";
import { RunRecords } from "./run-records.js";
import type { trackingSettings } from "./tracking-settings.js";

/** Settings of every run. */
export interface BaseRunConfig
  extends
    Settings<typeof modelSettings & typeof tuningSettings & typeof serviceSettings>,
    Partial<Settings<typeof loopSettings & typeof recordingSettings & typeof trackingSettings>>,
    Partial<EnvConfig>,
    JudgeConfig {
  readonly seed: number;
  readonly saveSteps: number;
  readonly microBatchTokens: number | undefined;
}

/** Functions and trackers that a run calls. */
export interface RunHooks {
  /** Additional trackers. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Receives warnings that do not stop the run. */
  readonly onWarning?: (message: string) => void;
  /** Receives information, such as the address at which W&B shows the run. */
  readonly onInfo?: (message: string) => void;
}

/** What a program opens its trainer with. */
export interface RunContext<Options, Config, Hooks> {
  readonly config: Config;
  /** Options as they were given. */
  readonly options: Options;
  /** The stored settings of the run to resume; undefined for a new run. */
  readonly saved: Options | undefined;
  readonly hooks: Hooks;
  readonly lock: FolderLock;
  readonly checkpointDir: string;
  /** Scores episodes, if the config names a judge. */
  readonly judge: EpisodeJudge | undefined;
  /** Shows a warning, and logs it in the run folder once that is open. */
  readonly onWarning: (message: string) => void;
  /**
   * Opens the model, which the run closes, as a config says: the context's, or one that what was
   * opened has completed.
   */
  readonly openModel: (
    config: Config,
    valueHead: Parameters<typeof openTrainable>[1]["valueHead"],
  ) => Promise<LanguageModel>;
  /** Adds a call for the end of the run, before those added earlier. */
  readonly defer: (close: (isFinished: boolean) => Promise<void>) => void;
}

/** What the loop of a run receives, in addition to a program's own callbacks. */
export type LoopHooks = Required<Pick<TrainLoopOptions, "tracker" | "onUpdate">>;

/** An open trainer with its model. */
export interface OpenedRun<Config, Callbacks> {
  /** The config, completed by what was opened. */
  readonly config: Config;
  readonly model: LanguageModel;
  /** Updates made before the run was resumed; 0 without a checkpoint. */
  readonly resumedAt: number;
  /** Whether the run continues from a checkpoint. */
  readonly hasCheckpoint: boolean;
  /** Whether it continues a warm start that was interrupted. Default: false. */
  readonly resumesWarmStart?: boolean;
  train(callbacks: Callbacks & LoopHooks): Promise<TrainResult>;
  /** Takes over settings that changed between two updates, apart from those of the loop. */
  change?(config: Config): void;
}

/** A kind of run: what it trains and on what. `openRun` does the rest. */
export interface RunProgram<
  Options extends object,
  Config extends BaseRunConfig,
  Hooks extends RunHooks,
  Opened extends OpenedRun<Config, never>,
> {
  /** The command that starts and resumes its runs. */
  readonly command: RunCommand;
  /** Folder of the trained adapter or model in a run folder. */
  readonly resultFolder: string;
  /** All settings, which say what may change. */
  readonly settings: SettingTable;
  /**
   * Resolves options; those of a run to resume (`isResolved`) are complete. @throws
   * INVALID_ARGUMENT, and what loading modules throws
   */
  resolve(options: Options, isResolved: boolean): MaybePromise<Config>;
  /** Returns what is stored of a config. Default: all. */
  toJson?(config: Config): object;
  open(context: RunContext<Options, Config, Hooks>): Promise<Opened>;
}

/**
 * Starts a run in a new folder. Nothing is written before everything is open.
 * @throws INVALID_ARGUMENT for invalid settings, INVALID_STATE for a folder that contains a run,
 * FOLDER_IN_USE, FILE_WRITE_FAILED, and what the program throws.
 */
export async function startProgram<
  Options extends object,
  Config extends BaseRunConfig,
  Hooks extends RunHooks,
  Opened extends OpenedRun<Config, never>,
>(
  program: RunProgram<Options, Config, Hooks, Opened>,
  options: Options,
  folder: string,
  hooks: Hooks,
): Promise<RunParts<Config, Opened>> {
  const config = await program.resolve(options, false);
  const given = { config, options, saved: undefined, hooks };
  return openLocked(folder, checkNewRunFolder, async (lock) => openRun(program, { ...given, lock }));
}

/**
 * Resumes a run from its newest checkpoint, or from its start if it has none. Only settings that
 * are `changeable` may change.
 * @throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for a run of another version,
 * INVALID_ARGUMENT for other changes and for a run of another program, and as `startProgram`.
 */
export async function resumeProgram<
  Options extends object,
  Config extends BaseRunConfig,
  Hooks extends RunHooks,
  Opened extends OpenedRun<Config, never>,
>(
  program: RunProgram<Options, Config, Hooks, Opened>,
  folder: string,
  changes: Partial<Options>,
  hooks: Hooks,
): Promise<RunParts<Config, Opened>> {
  const saved = await requireRunConfig<Options>(folder);
  checkCommand(saved, program.command, folder);
  checkUnchanged(program.settings, saved, changes, folder);
  const given = { ...saved, ...changes };
  const run = { config: await program.resolve(given, true), options: given, saved, hooks };
  return openLocked(folder, checkWritable, async (lock) => openRun(program, { ...run, lock }));
}

async function openRun<
  Options extends object,
  Config extends BaseRunConfig,
  Hooks extends RunHooks,
  Opened extends OpenedRun<Config, never>,
>(
  program: RunProgram<Options, Config, Hooks, Opened>,
  given: Pick<RunContext<Options, Config, Hooks>, "config" | "options" | "saved" | "hooks" | "lock">,
): Promise<RunParts<Config, Opened>> {
  const { config: resolved, hooks, lock } = given;
  const { trackers = [], onDownload, onWarning = () => {}, onInfo } = hooks;
  const wandb = resolveWandbConfig({ project: resolved.wandbProject, mode: resolved.wandbMode });
  const judge = EpisodeJudge.create(resolved, onWarning);
  const closers: ((isFinished: boolean) => Promise<void>)[] = [];
  let model: LanguageModel | undefined;
  let records: RunRecords | undefined;
  const close = async () => {
    for (const closer of closers.toReversed()) await closer(records?.isFinished === true);
    await records?.close();
    await judge?.close();
    await model?.close();
  };
  try {
    const opened = await program.open({
      ...given,
      checkpointDir: getCheckpointDir(lock.folder),
      judge,
      onWarning: (message) => {
        records?.log.warning(message, "metrics");
        onWarning(message);
      },
      openModel: async (config, valueHead) => {
        const memory = config.backend === "tinker" ? undefined : await estimateRunMemory(config);
        if (memory?.fit === "insufficient" && config.checkMemory)
          throw invalidArgument(`${memory.text} To start it anyway, set \`checkMemory\` to false (--no-check-memory).`);
        if (memory?.fit === "fits") onInfo?.(memory.text);
        else if (memory !== undefined) onWarning(memory.text);
        model = await openRunModel(config, { valueHead, onDownload, onWarning });
        if (config.backend !== "tinker" && config.device === "auto" && model.causalLM.runtime.device === "webgpu")
          onInfo?.("Runs on the GPU, which is faster here; --device cpu runs on the CPU.");
        return model;
      },
      defer: (closer) => void closers.push(closer),
    });
    const { config, resumedAt, hasCheckpoint } = opened;
    const isResumed = given.saved !== undefined;
    records = await RunRecords.open(lock.folder, config, {
      saved: program.toJson?.(config),
      wandb,
      trackers,
      judge,
      onWarning,
      onInfo,
      resumedAt: isResumed ? resumedAt : undefined,
      hasCheckpoint,
    });
    return { program, lock, isResumed, opened, records, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What an open run consists of. */
export interface RunParts<Config extends BaseRunConfig, Opened extends OpenedRun<Config, never>> {
  readonly program: Pick<
    RunProgram<never, Config, never, Opened>,
    "command" | "resultFolder" | "settings" | "resolve" | "toJson"
  >;
  readonly lock: FolderLock;
  readonly isResumed: boolean;
  readonly opened: Opened;
  readonly records: RunRecords;
  close(): Promise<void>;
}

type CallbacksOf<Opened> = Opened extends { train(callbacks: infer Callbacks): unknown }
  ? Omit<Callbacks, keyof LoopHooks> & Partial<Pick<LoopHooks, "onUpdate">>
  : never;

/** An open run. */
export class OpenRun<Config extends BaseRunConfig, Opened extends OpenedRun<Config, never>> {
  private currentConfig: Config;

  constructor(private readonly parts: RunParts<Config, Opened>) {
    this.currentConfig = parts.opened.config;
  }

  get config(): Config {
    return this.currentConfig;
  }

  get folder(): string {
    return this.parts.lock.folder;
  }

  /** The trainer and what belongs to it. */
  get opened(): Opened {
    return this.parts.opened;
  }

  get isResumed(): boolean {
    return this.parts.isResumed;
  }

  /** Updates made before the run was resumed; 0 without a checkpoint. */
  get resumedAt(): number {
    return this.opened.resumedAt;
  }

  /** Whether the run continues from a checkpoint. */
  get hasCheckpoint(): boolean {
    return this.opened.hasCheckpoint;
  }

  /** Whether the run continues a warm start that was interrupted. */
  get resumesWarmStart(): boolean {
    return this.opened.resumesWarmStart === true;
  }

  /**
   * Trains to the end of the run, or until `signal` aborts. @throws what the trainer throws; the
   * last checkpoint remains.
   */
  async train(callbacks: Partial<CallbacksOf<Opened>> = {}): Promise<TrainResult> {
    const { opened, records } = this.parts;
    const { onUpdate } = callbacks as Partial<LoopHooks>;
    const hooks: LoopHooks = {
      tracker: records.tracker,
      onUpdate: async (event) => {
        const requests = { ...(await onUpdate?.(event)), ...(await this.takeRequests()) };
        return opened.model.policy.isExhausted === true ? { ...requests, stop: true } : requests;
      },
    };
    return records.watch(opened.train({ ...callbacks, ...hooks } as never));
  }

  /**
   * Tokens that a service has computed for the run, and the losses that it trained with, as text;
   * undefined for a run of the engine.
   */
  get serviceUsage(): string | undefined {
    const { metrics, usedLosses = [] } = this.opened.model.policy;
    if (metrics === undefined) return undefined;
    const counts = Object.entries(metrics).map(
      ([name, count]) => `${count.toLocaleString("en-US")} ${name.replace("service/tokens_", "")}`,
    );
    const losses = usedLosses.length === 0 ? "" : ` Losses of the service: ${usedLosses.join(", ")}.`;
    return `Tokens of the service: ${counts.join(", ")}.${losses}`;
  }

  get isExhausted(): boolean {
    return this.opened.model.policy.isExhausted === true;
  }

  /** Saves the trained parameters in the run folder and returns that path. */
  async saveModel(): Promise<string> {
    const { lock, program, opened } = this.parts;
    const path = join(lock.folder, program.resultFolder);
    await lock.verify();
    await opened.model.savePretrained(path);
    return path;
  }

  async close(): Promise<void> {
    await this.parts.close();
    await this.parts.lock.release();
  }

  /** Carries out what was requested in the run folder. */
  private async takeRequests() {
    const { program, opened, records } = this.parts;
    const { folder } = this;
    return takeControlRequests(folder, records.log, async (name, value) => {
      if (!Object.hasOwn(program.settings, name))
        throw invalidArgument(`${name} is not a setting of llamagym ${program.command}.`);
      if (!Object.hasOwn(loopSettings, name) && opened.change === undefined)
        throw invalidArgument(`${name} cannot change while this run trains; stop it, and change it on resume.`);
      const config = await program.resolve({ ...this.currentConfig, [name]: value } as never, true);
      opened.change?.(config);
      await writeRunConfig(folder, program.toJson?.(config) ?? config);
      this.currentConfig = config;
      return { options: selectSettings(loopSettings, config) };
    });
  }
}

/** @throws INVALID_ARGUMENT for a run of another command. */
function checkCommand(saved: object, command: RunCommand, folder: string): void {
  const owner = findRunCommand(saved);
  if (owner === command) return;
  const advice =
    owner === undefined
      ? "Resume it with the program that started it."
      : `Resume it with: llamagym ${owner} --resume ${folder}`;
  throw invalidArgument(`The run in ${folder} is not a run of llamagym ${command}. ${advice}`);
}

/** Returns the names of the settings that may change when a run is resumed. */
export function listChangeable(table: SettingTable): readonly string[] {
  return Object.keys(filterSettings(table, ({ changeable }) => changeable !== undefined));
}

/** Checks that a resumed run changes only some settings. @throws INVALID_ARGUMENT */
function checkUnchanged(table: SettingTable, config: object, changes: object, folder: string): void {
  const values = config as Readonly<Record<string, unknown>>;
  const changeable = listChangeable(table);
  for (const [name, value] of Object.entries(changes)) {
    const [before, after] = [values[name], value].map((item) => JSON.stringify(item));
    if (before === after || changeable.includes(name)) continue;
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `The run in ${folder} has ${name} ${before ?? "not set"}, which cannot change to ${after ?? "not set"} on resume. ` +
        `Omit it, or start a new run in another folder. What can be changed: ${changeable.join(", ")}.`,
    );
  }
}
