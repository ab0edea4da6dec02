import { join } from "node:path";
import type { TextAgent } from "../agent/text-agent.js";
import { algorithms } from "../algorithms/table.js";
import type { Env } from "../envs/env.js";
import { LlamaGymError } from "../errors.js";
import type { DownloadProgress } from "../files/index.js";
import { openTrainable } from "../generation/auto.js";
import type { LanguageModel } from "../generation/language-model.js";
import {
  openRunTrackers,
  wandbSettings,
  type RunOutcome,
  type Tracker,
  type TrackerSource,
} from "../tracking/index.js";
import { envMaker, makeTextAgent, readableEnv } from "./make-agent.js";
import { memoryNeed } from "./memory.js";
import { checkWritable, readRunConfig, writeRunConfig } from "./run-folder.js";
import { quantiseBits, resolveTrainConfig, type TrainConfig, type TrainOptions } from "./settings.js";
import { warmStartOf } from "./warm-start-of.js";
import { Trainer, type TrainingResult, type WatchOptions } from "./trainer.js";

const CHECKPOINTS = "checkpoints";
/** The folder of the finished adapter. */
const ADAPTER = "adapter";

/** What may be another when a run goes on; all else would make it another run. */
export const RESUME_SETTINGS = [
  "episodes",
  "turns",
  "device",
  "threads",
  "maxTokens",
  "saveEvery",
  "evalEpisodes",
] as const;

export interface RunOptions {
  /** More that watches the run, beside its own files. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Told what is worth knowing and no error. */
  readonly warn?: (message: string) => void;
  /** Told where the run can be seen. */
  readonly note?: (message: string) => void;
}

/** A training run, open: its settings, its agent, and the folder that keeps it. */
export interface Run {
  readonly config: TrainConfig;
  readonly folder: string;
  readonly agent: TextAgent;
  train(watch?: Omit<WatchOptions, "tracker">): Promise<TrainingResult>;
  /** Whether it goes on with what was begun before, and the updates that were made then; 0 where there is no checkpoint. */
  readonly isResumed: boolean;
  readonly resumedAt: number;
  /** Whether updates on the best episodes follow those of the algorithm; it may be switched while the run trains. */
  onlineSft: boolean;
  readonly makeEnv: () => Promise<Env>;
  /** Saves what is trained to the run's folder "adapter"; gives its path. */
  saveAdapter(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Starts a run in a folder that has none. Throws INVALID_ARGUMENT for settings that cannot be, INVALID_STATE for a folder with a
 * run, FILE_WRITE_FAILED, and what opening the model and the environment throws; nothing is written before both are open.
 */
export async function startRun(options: TrainOptions, folder: string, extras: RunOptions = {}): Promise<Run> {
  const config = resolveTrainConfig(options);
  if ((await readRunConfig(folder)) !== undefined) {
    throw new LlamaGymError(
      "INVALID_STATE",
      `${folder} holds a run already. Go on with it by --resume ${folder}, or choose another --output.`,
    );
  }
  await checkWritable(folder);
  return openRun(config, folder, extras, false);
}

/**
 * Goes on with a run from its newest checkpoint, or from its beginning where it was stopped before there was one. It may be made
 * longer; other settings may be given again as they were. Throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for
 * one of another version, INVALID_ARGUMENT for a change that would make it another run, and what startRun throws.
 */
export async function resumeRun(
  folder: string,
  changes: Partial<TrainOptions> = {},
  extras: RunOptions = {},
): Promise<Run> {
  const saved = await readRunConfig(folder);
  if (saved === undefined)
    throw new LlamaGymError("FILE_NOT_FOUND", `There is no run in ${folder}: it has no config.json.`);
  checkUnchanged(resolveTrainConfig(saved), changes, folder);
  await checkWritable(folder);
  return openRun(resolveTrainConfig({ ...saved, ...changes }), folder, extras, true);
}

/** Throws INVALID_ARGUMENT for a setting other than the run's that would make it another run. */
function checkUnchanged(config: TrainConfig, given: Partial<TrainOptions>, folder: string): void {
  const changeable: readonly string[] = RESUME_SETTINGS;
  for (const name of Object.keys(given) as (keyof TrainConfig)[]) {
    const [before, now] = [config[name], given[name]].map((value) => JSON.stringify(value));
    if (before === now || changeable.includes(name)) continue;
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `The run in ${folder} has ${name} ${before ?? "not set"}, and ${now ?? "no value"} was given, which makes another run. ` +
        `Choose another folder, or leave it as it was. What can be changed: ${RESUME_SETTINGS.join(", ")}.`,
    );
  }
}

async function openRun(
  config: TrainConfig,
  folder: string,
  { trackers, onDownload, warn = () => {}, note }: RunOptions,
  isResumed: boolean,
): Promise<Run> {
  const { episodes, turns, numEnvs, seed, saveEvery } = config;
  const wandb = wandbSettings({ project: config.wandbProject, mode: config.wandbMode });
  const makeEnv = envMaker(config);
  const game = await readableEnv(makeEnv, config.env);
  const sftWarmStart = await warmStartOf(config);
  const memory = await memoryNeed(config);
  if (memory?.warning !== undefined) warn(memory.warning);
  else if (memory !== undefined) note?.(memory.text);
  const model = await openModel(config, onDownload);
  let trainer: Trainer | undefined;
  try {
    const agent = makeTextAgent(model, game, { ...config, sftWarmStart });
    if (!isResumed) for (const reason of (await agent.loadDemonstrations()).refused) warn(reason);
    await agent.learner();
    const checkpoints = join(folder, CHECKPOINTS);
    trainer = new Trainer({
      agent,
      env: makeEnv,
      episodes,
      turns,
      numEnvs,
      seed,
      saveEvery,
      checkpoints,
      warn,
      entropyFloor: config.entropyFloor,
    });
    const resumedAt = isResumed ? await trainer.resume() : 0;
    const settings = await writeRunConfig(folder, config);
    // A warm start, which is step 0, is done again where no update was saved after it.
    const resumeFrom = isResumed ? (resumedAt === 0 ? -1 : resumedAt) : undefined;
    const tracker = openRunTrackers(folder, {
      tensorboard: config.tensorboard,
      wandb,
      trackers,
      warn,
      note,
      resumeFrom,
    });
    await tracker.config(settings);
    return new OpenRun(config, folder, agent, isResumed, resumedAt, makeEnv, trainer, tracker);
  } catch (error) {
    await trainer?.close();
    await model.close();
    throw error;
  }
}

class OpenRun implements Run {
  private outcome: RunOutcome = "finished";

  constructor(
    readonly config: TrainConfig,
    readonly folder: string,
    readonly agent: TextAgent,
    readonly isResumed: boolean,
    readonly resumedAt: number,
    readonly makeEnv: () => Promise<Env>,
    private readonly trainer: Trainer,
    private readonly tracker: Required<Tracker>,
  ) {}

  get onlineSft(): boolean {
    return this.trainer.onlineSft;
  }

  set onlineSft(isOn: boolean) {
    this.trainer.onlineSft = isOn;
  }

  async train(watch: Omit<WatchOptions, "tracker"> = {}): Promise<TrainingResult> {
    try {
      return await this.trainer.train({ ...watch, tracker: this.tracker });
    } catch (error) {
      this.outcome = "failed";
      throw error;
    }
  }

  async saveAdapter(): Promise<string> {
    const path = join(this.folder, ADAPTER);
    await this.agent.save(path);
    return path;
  }

  async close(): Promise<void> {
    await this.trainer.close();
    await this.tracker.close(this.outcome);
    await this.agent.model.close();
  }
}

/** Opens the run's model with what is trained of it, and with a value head where the algorithm trains one. */
async function openModel(config: TrainConfig, onProgress: RunOptions["onDownload"]): Promise<LanguageModel> {
  const { algorithm, model, adapter, device, threads, quantise, backward, train, r, loraAlpha, loraDropout, seed } =
    config;
  const { targetModules } = config;
  const targets = targetModules === "all-linear" ? targetModules : targetModules.split(",").map((name) => name.trim());
  return openTrainable(model, {
    adapter,
    device,
    threads,
    quantise: quantiseBits(quantise),
    backward,
    peftConfig: train === "all" ? null : { r, loraAlpha, loraDropout, targetModules: targets, seed },
    valueHead: algorithms[algorithm].hasCritic ? { kind: config.valueHead, dropout: config.valueHeadDropout } : null,
    onProgress,
  });
}
