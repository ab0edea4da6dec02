import { join } from "node:path";
import type { TextAgent } from "../../rl/agent/text-agent.js";
import { algorithms } from "../../rl/algorithms/algorithms.js";
import type { Env } from "../../envs/env.js";
import { LlamaGymError } from "../../core/errors.js";
import type { DownloadProgress } from "../../models/files/index.js";
import { openTrainable } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { openRunTrackers, type RunOutcome, type Tracker, type TrackerSource } from "../../rl/tracking/index.js";
import { openWandbTracker, resolveWandbConfig } from "../tracking/index.js";
import { createEnvFactory, makeTextAgent, requireTextEnv } from "./make-text-agent.js";
import { estimateRunMemory } from "./estimate-run-memory.js";
import { checkWritable, readRunConfig, writeRunConfig } from "./run-folder.js";
import { parseQuantizeBits, resolveTrainConfig, type TrainConfig, type TrainOptions } from "./run-settings.js";
import { resolveWarmStart } from "./resolve-warm-start.js";
import { Trainer, type TrainResult, type TrainCallbacks } from "../../rl/train/trainer.js";

const CHECKPOINTS_FOLDER = "checkpoints";
/** The folder of the finished adapter. */
const ADAPTER_FOLDER = "adapter";

/** What may be another when a run goes on; all else would make it another run. */
export const CHANGEABLE_ON_RESUME = [
  "episodes",
  "turns",
  "device",
  "threads",
  "microBatchTokens",
  "saveSteps",
  "evalEpisodes",
] as const;

export interface RunOptions {
  /** More that watches the run, beside its own files. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Told what is worth knowing and no error. */
  readonly onWarning?: (message: string) => void;
  /** Told where the run can be seen. */
  readonly onInfo?: (message: string) => void;
}

/** A training run, open: its settings, its agent, and the folder that keeps it. */
export interface Run {
  readonly config: TrainConfig;
  readonly folder: string;
  readonly agent: TextAgent;
  train(callbacks?: Omit<TrainCallbacks, "tracker">): Promise<TrainResult>;
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
export async function startRun(options: TrainOptions, folder: string, runOptions: RunOptions = {}): Promise<Run> {
  const config = resolveTrainConfig(options);
  if ((await readRunConfig(folder)) !== undefined) {
    throw new LlamaGymError(
      "INVALID_STATE",
      `${folder} holds a run already. Go on with it by --resume ${folder}, or choose another --output.`,
    );
  }
  await checkWritable(folder);
  return openRun(config, folder, runOptions, false);
}

/**
 * Goes on with a run from its newest checkpoint, or from its beginning where it was stopped before there was one. It may be made
 * longer; other settings may be given again as they were. Throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for
 * one of another version, INVALID_ARGUMENT for a change that would make it another run, and what startRun throws.
 */
export async function resumeRun(
  folder: string,
  changes: Partial<TrainOptions> = {},
  runOptions: RunOptions = {},
): Promise<Run> {
  const saved = await readRunConfig(folder);
  if (saved === undefined)
    throw new LlamaGymError("FILE_NOT_FOUND", `There is no run in ${folder}: it has no config.json.`);
  checkUnchanged(resolveTrainConfig(saved), changes, folder);
  await checkWritable(folder);
  return openRun(resolveTrainConfig({ ...saved, ...changes }), folder, runOptions, true);
}

/** Throws INVALID_ARGUMENT for a setting other than the run's that would make it another run. */
function checkUnchanged(config: TrainConfig, given: Partial<TrainOptions>, folder: string): void {
  const changeable: readonly string[] = CHANGEABLE_ON_RESUME;
  for (const name of Object.keys(given) as (keyof TrainConfig)[]) {
    const [before, after] = [config[name], given[name]].map((value) => JSON.stringify(value));
    if (before === after || changeable.includes(name)) continue;
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `The run in ${folder} has ${name} ${before ?? "not set"}, and ${after ?? "no value"} was given, which makes another run. ` +
        `Choose another folder, or leave it as it was. What can be changed: ${CHANGEABLE_ON_RESUME.join(", ")}.`,
    );
  }
}

async function openRun(
  config: TrainConfig,
  folder: string,
  { trackers, onDownload, onWarning = () => {}, onInfo }: RunOptions,
  isResumed: boolean,
): Promise<Run> {
  const { episodes, turns, numEnvs, seed, saveSteps } = config;
  const wandb = resolveWandbConfig({ project: config.wandbProject, mode: config.wandbMode });
  const makeEnv = createEnvFactory(config);
  const textEnv = await requireTextEnv(makeEnv, config.env);
  const sftWarmStart = await resolveWarmStart(config);
  const memoryEstimate = await estimateRunMemory(config);
  if (memoryEstimate?.warning !== undefined) onWarning(memoryEstimate.warning);
  else if (memoryEstimate !== undefined) onInfo?.(memoryEstimate.text);
  const model = await openModel(config, onDownload);
  let trainer: Trainer | undefined;
  try {
    const agent = makeTextAgent(model, textEnv, { ...config, sftWarmStart });
    if (!isResumed) for (const reason of (await agent.loadDemonstrations()).rejected) onWarning(reason);
    await agent.getLearner();
    const checkpoints = join(folder, CHECKPOINTS_FOLDER);
    trainer = new Trainer({
      agent,
      env: makeEnv,
      episodes,
      turns,
      numEnvs,
      seed,
      saveSteps,
      checkpointDir: checkpoints,
      onWarning,
      entropyFloor: config.entropyFloor,
    });
    const resumedAt = isResumed ? await trainer.resume() : 0;
    const settings = await writeRunConfig(folder, config);
    // A warm start, which is step 0, is done again where no update was saved after it.
    const resumeFromStep = isResumed ? (resumedAt === 0 ? -1 : resumedAt) : undefined;
    const tracker = openRunTrackers(folder, {
      tensorboard: config.tensorboard,
      trackers: [
        ...(wandb === undefined
          ? []
          : [async () => openWandbTracker(folder, wandb, { onWarning, onInfo, resumeFromStep })]),
        ...(trackers ?? []),
      ],
      onWarning,
      resumeFromStep,
    });
    await tracker.logConfig(settings);
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

  set onlineSft(enabled: boolean) {
    this.trainer.onlineSft = enabled;
  }

  async train(callbacks: Omit<TrainCallbacks, "tracker"> = {}): Promise<TrainResult> {
    try {
      return await this.trainer.train({ ...callbacks, tracker: this.tracker });
    } catch (error) {
      this.outcome = "failed";
      throw error;
    }
  }

  async saveAdapter(): Promise<string> {
    const path = join(this.folder, ADAPTER_FOLDER);
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
  const {
    algorithm,
    model,
    adapter,
    device,
    threads,
    quantize,
    backwardPrecision,
    tuning,
    r,
    loraAlpha,
    loraDropout,
    seed,
  } = config;
  const { targetModules } = config;
  const targetNames =
    targetModules === "all-linear" ? targetModules : targetModules.split(",").map((name) => name.trim());
  return openTrainable(model, {
    adapter,
    device,
    threads,
    quantize: parseQuantizeBits(quantize),
    backwardPrecision,
    peftConfig: tuning === "full" ? null : { r, loraAlpha, loraDropout, targetModules: targetNames, seed },
    valueHead: algorithms[algorithm].hasCritic ? { kind: config.valueHead, dropout: config.valueHeadDropout } : null,
    onProgress,
  });
}
