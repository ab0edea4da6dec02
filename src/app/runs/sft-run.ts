import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { readExamples, type InvalidLine } from "../../rl/data/read-examples.js";
import type { SftExample } from "../../rl/data/sft-example.js";
import { SftTrainer, type SftEvaluation, type SftState, type SftMetrics } from "../../rl/algorithms/sft/sft-trainer.js";
import { LlamaGymError } from "../../core/errors.js";
import { readJsonIfExists, writeJson, type DownloadProgress, type JsonObject } from "../../models/files/index.js";
import { AutoModelForCausalLM, getPeftModel } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { makeTrainable } from "../../models/adapters/get-peft-model.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { openRunTrackers, type Tracker, type TrackerSource } from "../../rl/tracking/index.js";
import { findLatestCheckpoint, readCheckpoint, writeCheckpoint } from "../../rl/train/checkpoint-folder.js";
import { checkFormatVersion } from "../../rl/train/check-format-version.js";
import { parseQuantizeBits } from "./run-settings.js";
import { resolveSftRunConfig, getSftConfig, type SftRunConfig, type SftRunOptions } from "./sft-run-settings.js";

/** The layout of a run folder; another one is refused. */
const RUN_VERSION = 2;
const CONFIG_FILE = "config.json";
const CHECKPOINTS_FOLDER = "checkpoints";
/** The folder of the finished adapter or model. */
const RESULT_FOLDER = "model";
/** Decides which examples are kept apart; a child of the run's seed. */
const SPLIT_STREAM = 7;

export interface SftRunHooks {
  /** More that watches the run, beside metrics.jsonl and TensorBoard's files. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Told what is worth knowing and no error. */
  readonly onWarning?: (message: string) => void;
}

export interface SftRunCallbacks {
  readonly onStep?: (stats: SftMetrics) => void;
  readonly onEvaluation?: (evaluation: SftEvaluation, step: number) => void;
  /** Ends the run after the update that is under way, with a checkpoint. */
  readonly signal?: AbortSignal;
}

/** A run of supervised fine-tuning, open: its settings, its trainer, and the folder that keeps it. */
export interface SftRun {
  readonly config: SftRunConfig;
  readonly folder: string;
  readonly trainer: SftTrainer;
  /** Updates that were made before it was opened. */
  readonly resumedAt: number;
  readonly invalidLines: readonly InvalidLine[];
  /** Makes the updates that are left; gives true when `signal` ended it before. */
  train(callbacks?: SftRunCallbacks): Promise<boolean>;
  /** Saves what is trained to the run's folder "model"; gives its path. */
  saveResult(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Starts a run in a folder that has none. Throws INVALID_ARGUMENT for settings and examples that cannot be, FILE_CORRUPT for a
 * broken line, INVALID_STATE for a folder with a run; nothing is written before model and examples are there.
 */
export async function startSftRun(options: SftRunOptions, folder: string, hooks: SftRunHooks = {}): Promise<SftRun> {
  const config = resolveSftRunConfig(options);
  if ((await readJsonIfExists(join(folder, CONFIG_FILE))) !== undefined) {
    throw new LlamaGymError(
      "INVALID_STATE",
      `${folder} holds a run already. Go on with it by --resume ${folder}, or choose another --output.`,
    );
  }
  return openRun(config, folder, hooks, false);
}

/**
 * Goes on with a run from its newest checkpoint. Throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for one of
 * another version, and what startSftRun throws.
 */
export async function resumeSftRun(folder: string, hooks: SftRunHooks = {}): Promise<SftRun> {
  const saved = await readJsonIfExists(join(folder, CONFIG_FILE));
  if (saved === undefined)
    throw new LlamaGymError("FILE_NOT_FOUND", `There is no run in ${folder}: it has no ${CONFIG_FILE}.`);
  const advice = "Go on with the version that made it, or start a new run from its model.";
  const options = checkFormatVersion(saved, RUN_VERSION, `The run in ${folder}`, advice);
  return openRun(resolveSftRunConfig(options as unknown as SftRunOptions), folder, hooks, true);
}

async function openRun(
  config: SftRunConfig,
  folder: string,
  { trackers, onDownload, onWarning = () => {} }: SftRunHooks,
  isResumed: boolean,
): Promise<SftRun> {
  const model = await openModel(config, onDownload);
  try {
    const { examples, evalExamples, invalidLines } = await readData(config, model);
    const trainer = await SftTrainer.create(model, {
      ...getSftConfig(config),
      train: examples,
      evaluation: evalExamples,
    });
    if (isResumed) await restoreCheckpoint(trainer, join(folder, CHECKPOINTS_FOLDER));
    await mkdir(folder, { recursive: true }).catch((error: unknown) => {
      throw new LlamaGymError("FILE_WRITE_FAILED", `The run folder ${folder} cannot be made: ${String(error)}`);
    });
    const resumedAt = trainer.step;
    const resume = isResumed ? { resumeFromStep: resumedAt } : {};
    const tracker = openRunTrackers(folder, { ...resume, trackers, onWarning });
    const settings = JSON.parse(JSON.stringify({ version: RUN_VERSION, ...config })) as JsonObject;
    await writeJson(join(folder, CONFIG_FILE), settings);
    await tracker.logConfig(settings);
    return {
      config,
      folder,
      trainer,
      resumedAt,
      invalidLines,
      train: async (callbacks) =>
        trainAndKeep({ trainer, folder, config, tracker, hasKept: evalExamples.length > 0 }, callbacks),
      saveResult: async () => {
        const path = join(folder, RESULT_FOLDER);
        await model.savePretrained(path);
        return path;
      },
      close: async () => {
        await tracker.close();
        await model.close();
      },
    };
  } catch (error) {
    await model.close();
    throw error;
  }
}

async function openModel(config: SftRunConfig, onProgress: SftRunHooks["onDownload"]): Promise<LanguageModel> {
  const {
    model: id,
    adapter,
    device,
    threads,
    backwardPrecision,
    tuning,
    r,
    loraAlpha,
    loraDropout,
    targetModules,
  } = config;
  const quantize = parseQuantizeBits(config.quantize);
  const options = { adapter, device, threads, quantize, backwardPrecision, onProgress };
  const model = await AutoModelForCausalLM.fromPretrained(id, options);
  try {
    // An adapter that was there is trained on.
    if (model.causalLM.isTrainable) return model;
    if (tuning === "full") return model.withCausalLM(await makeTrainable(model.causalLM));
    const targetNames =
      targetModules === "all-linear" ? targetModules : targetModules.split(",").map((name) => name.trim());
    return await getPeftModel(model, { r, loraAlpha, loraDropout, targetModules: targetNames, seed: config.seed });
  } catch (error) {
    await model.close();
    throw error;
  }
}

interface SftRunData {
  readonly examples: readonly SftExample[];
  /** For evaluation. */
  readonly evalExamples: readonly SftExample[];
  readonly invalidLines: readonly InvalidLine[];
}

async function readData(config: SftRunConfig, model: LanguageModel): Promise<SftRunData> {
  const { data, evalData, evalSplit, onInvalidLine, seed } = config;
  const hasTemplate = model.hasTokenizer && model.tokenizer.chatTemplates.size > 0;
  const prompts = config.prompts === "auto" ? (hasTemplate ? "chat" : "text") : config.prompts;
  const loaded = await readExamples(data, { onInvalidLine, prompts });
  if (evalData !== undefined) {
    const kept = await readExamples(evalData, { onInvalidLine, prompts });
    return { ...loaded, evalExamples: kept.examples, invalidLines: [...loaded.invalidLines, ...kept.invalidLines] };
  }
  const order = new RandomStream(seed, [SPLIT_STREAM]).permutation(loaded.examples.length);
  const count = Math.round(evalSplit * order.length);
  const select = (indices: readonly number[]) => indices.map((i) => loaded.examples[i]);
  return { ...loaded, examples: select(order.slice(count)), evalExamples: select(order.slice(0, count)) };
}

async function restoreCheckpoint(trainer: SftTrainer, checkpoints: string): Promise<void> {
  const latest = await findLatestCheckpoint(checkpoints);
  // A run that was stopped before its first checkpoint starts from the beginning.
  if (latest === undefined) return;
  const { optimizer, state } = await readCheckpoint<Omit<SftState, "optimizer">>(latest);
  await trainer.model.loadTrainedValues(latest);
  await trainer.setState({ ...state, optimizer });
}

interface KeptRun {
  readonly trainer: SftTrainer;
  readonly folder: string;
  readonly config: SftRunConfig;
  readonly tracker: Tracker;
  /** Whether there are examples to evaluate on. */
  readonly hasKept: boolean;
}

async function trainAndKeep(run: KeptRun, { onStep, onEvaluation, signal }: SftRunCallbacks = {}): Promise<boolean> {
  const { trainer, config, tracker } = run;
  let saved = trainer.step;
  let lastEpoch = 0;
  await trainer.train({
    signal,
    onStep: async (stats) => {
      const { step, ...numbers } = stats;
      await tracker.log(step, prefixMetrics(numbers));
      onStep?.(stats);
      const isEpochDone = Math.floor(stats.epoch ?? 0) > Math.floor(lastEpoch);
      lastEpoch = stats.epoch ?? 0;
      const isDue = config.evalSteps === undefined ? isEpochDone : step % config.evalSteps === 0;
      if (run.hasKept && (isDue || step === trainer.totalSteps)) {
        const evaluation = await trainer.evaluate();
        await tracker.log(step, prefixMetrics(evaluation));
        onEvaluation?.(evaluation, step);
      }
      if (step % config.saveSteps === 0) {
        await save(run);
        saved = step;
      }
    },
  });
  if (trainer.step !== saved) await save(run);
  return trainer.step < (trainer.totalSteps ?? 0);
}

async function save({ trainer, folder }: KeptRun): Promise<void> {
  const { optimizer, ...state } = await trainer.getState();
  await writeCheckpoint(join(folder, CHECKPOINTS_FOLDER), trainer.step, { optimizer, state }, async (checkpoint) =>
    trainer.model.savePretrained(checkpoint),
  );
}

/** sft/loss, sft/eval_loss, ... */
function prefixMetrics(metrics: object): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`sft/${name}`, value as number]));
}
