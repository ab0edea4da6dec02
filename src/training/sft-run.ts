import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { readExamples, type BrokenLine } from "../algorithms/sft/jsonl.js";
import type { SftExample } from "../algorithms/sft/example.js";
import { SftTrainer, type SftEvaluation, type SftState, type SftStats } from "../algorithms/sft/trainer.js";
import { LlamaGymError } from "../errors.js";
import { readJsonIfThere, writeJson, type DownloadProgress, type JsonObject } from "../files/index.js";
import { AutoModelForCausalLM, getPeftModel } from "../generation/auto.js";
import type { LanguageModel } from "../generation/language-model.js";
import { trainWeights } from "../models/adapters.js";
import { RandomStream } from "../tensor/random.js";
import { openRunTrackers, type Tracker, type TrackerSource } from "../tracking/index.js";
import { latestCheckpoint, readCheckpoint, writeCheckpoint } from "./checkpoint-folder.js";
import { withoutVersion } from "./layout-version.js";
import { quantiseBits } from "./settings.js";
import { resolveSftRun, sftConfigOf, type SftRunConfig, type SftRunOptions } from "./sft-settings.js";

/** The layout of a run folder; another one is refused. */
const VERSION = 1;
const CONFIG_FILE = "config.json";
const CHECKPOINTS = "checkpoints";
/** The folder of the finished adapter or model. */
const RESULT = "model";
/** Decides which examples are kept apart; a child of the run's seed. */
const SPLIT_STREAM = 7;

export interface SftRunExtras {
  /** More that watches the run, beside metrics.jsonl and TensorBoard's files. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Told what is worth knowing and no error. */
  readonly warn?: (message: string) => void;
}

export interface SftRunWatch {
  readonly onStep?: (stats: SftStats) => void;
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
  readonly brokenLines: readonly BrokenLine[];
  /** Makes the updates that are left; gives true when `signal` ended it before. */
  train(watch?: SftRunWatch): Promise<boolean>;
  /** Saves what is trained to the run's folder "model"; gives its path. */
  saveResult(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Starts a run in a folder that has none. Throws INVALID_ARGUMENT for settings and examples that cannot be, FILE_CORRUPT for a
 * broken line, INVALID_STATE for a folder with a run; nothing is written before model and examples are there.
 */
export async function startSftRun(options: SftRunOptions, folder: string, extras: SftRunExtras = {}): Promise<SftRun> {
  const config = resolveSftRun(options);
  if ((await readJsonIfThere(join(folder, CONFIG_FILE))) !== undefined) {
    throw new LlamaGymError(
      "INVALID_STATE",
      `${folder} holds a run already. Go on with it by --resume ${folder}, or choose another --output.`,
    );
  }
  return openRun(config, folder, extras, false);
}

/**
 * Goes on with a run from its newest checkpoint. Throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for one of
 * another version, and what startSftRun throws.
 */
export async function resumeSftRun(folder: string, extras: SftRunExtras = {}): Promise<SftRun> {
  const saved = await readJsonIfThere(join(folder, CONFIG_FILE));
  if (saved === undefined)
    throw new LlamaGymError("FILE_NOT_FOUND", `There is no run in ${folder}: it has no ${CONFIG_FILE}.`);
  const advice = "Go on with the version that made it, or start a new run from its model.";
  const options = withoutVersion(saved, VERSION, `The run in ${folder}`, advice);
  return openRun(resolveSftRun(options as unknown as SftRunOptions), folder, extras, true);
}

async function openRun(
  config: SftRunConfig,
  folder: string,
  { trackers, onDownload, warn = () => {} }: SftRunExtras,
  isResumed: boolean,
): Promise<SftRun> {
  const model = await openModel(config, onDownload);
  try {
    const { examples, kept, brokenLines } = await readData(config, model);
    const trainer = await SftTrainer.create(model, { ...sftConfigOf(config), train: examples, evaluation: kept });
    if (isResumed) await restore(trainer, join(folder, CHECKPOINTS));
    await mkdir(folder, { recursive: true }).catch((error: unknown) => {
      throw new LlamaGymError("FILE_WRITE_FAILED", `The run folder ${folder} cannot be made: ${String(error)}`);
    });
    const resumedAt = trainer.step;
    const resume = isResumed ? { resumeFrom: resumedAt } : {};
    const tracker = openRunTrackers(folder, { ...resume, trackers, warn });
    const settings = JSON.parse(JSON.stringify({ version: VERSION, ...config })) as JsonObject;
    await writeJson(join(folder, CONFIG_FILE), settings);
    await tracker.config(settings);
    return {
      config,
      folder,
      trainer,
      resumedAt,
      brokenLines,
      train: async (watch) => trainAndKeep({ trainer, folder, config, tracker, hasKept: kept.length > 0 }, watch),
      saveResult: async () => {
        const path = join(folder, RESULT);
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

async function openModel(config: SftRunConfig, onProgress: SftRunExtras["onDownload"]): Promise<LanguageModel> {
  const { model: id, adapter, device, threads, backward, train, r, loraAlpha, loraDropout, targetModules } = config;
  const quantise = quantiseBits(config.quantise);
  const options = { adapter, device, threads, quantise, backward, onProgress };
  const model = await AutoModelForCausalLM.fromPretrained(id, options);
  try {
    // An adapter that was there is trained on.
    if (model.causalLM.isTrained) return model;
    if (train === "all") return model.withCausalLM(await trainWeights(model.causalLM));
    const targets =
      targetModules === "all-linear" ? targetModules : targetModules.split(",").map((name) => name.trim());
    return await getPeftModel(model, { r, loraAlpha, loraDropout, targetModules: targets, seed: config.seed });
  } catch (error) {
    await model.close();
    throw error;
  }
}

interface Data {
  readonly examples: readonly SftExample[];
  /** For evaluation. */
  readonly kept: readonly SftExample[];
  readonly brokenLines: readonly BrokenLine[];
}

async function readData(config: SftRunConfig, model: LanguageModel): Promise<Data> {
  const { data, evalData, evalShare, brokenLines, seed } = config;
  const hasTemplate = model.hasTokenizer && model.tokenizer.chatTemplates.size > 0;
  const prompts = config.prompts === "auto" ? (hasTemplate ? "chat" : "text") : config.prompts;
  const read = await readExamples(data, { brokenLines, prompts });
  if (evalData !== undefined) {
    const kept = await readExamples(evalData, { brokenLines, prompts });
    return { ...read, kept: kept.examples, brokenLines: [...read.brokenLines, ...kept.brokenLines] };
  }
  const order = new RandomStream(seed, [SPLIT_STREAM]).permutation(read.examples.length);
  const count = Math.round(evalShare * order.length);
  const pick = (places: readonly number[]) => places.map((i) => read.examples[i]);
  return { ...read, examples: pick(order.slice(count)), kept: pick(order.slice(0, count)) };
}

async function restore(trainer: SftTrainer, checkpoints: string): Promise<void> {
  const newest = await latestCheckpoint(checkpoints);
  // A run that was stopped before its first checkpoint starts from the beginning.
  if (newest === undefined) return;
  const { optimizer, rest } = await readCheckpoint<Omit<SftState, "optimizer">>(newest);
  await trainer.model.loadTrained(newest);
  await trainer.setState({ ...rest, optimizer });
}

interface KeptRun {
  readonly trainer: SftTrainer;
  readonly folder: string;
  readonly config: SftRunConfig;
  readonly tracker: Tracker;
  /** Whether there are examples to evaluate on. */
  readonly hasKept: boolean;
}

async function trainAndKeep(run: KeptRun, { onStep, onEvaluation, signal }: SftRunWatch = {}): Promise<boolean> {
  const { trainer, config, tracker } = run;
  let saved = trainer.step;
  let lastEpoch = 0;
  await trainer.train({
    signal,
    onStep: async (stats) => {
      const { step, ...numbers } = stats;
      await tracker.log(step, named(numbers));
      onStep?.(stats);
      const isEpochDone = Math.floor(stats.epoch ?? 0) > Math.floor(lastEpoch);
      lastEpoch = stats.epoch ?? 0;
      const isDue = config.evalEvery === undefined ? isEpochDone : step % config.evalEvery === 0;
      if (run.hasKept && (isDue || step === trainer.totalSteps)) {
        const evaluation = await trainer.evaluate();
        await tracker.log(step, named(evaluation));
        onEvaluation?.(evaluation, step);
      }
      if (step % config.saveEvery === 0) {
        await save(run);
        saved = step;
      }
    },
  });
  if (trainer.step !== saved) await save(run);
  return trainer.step < (trainer.totalSteps ?? 0);
}

async function save({ trainer, folder }: KeptRun): Promise<void> {
  const { optimizer, ...rest } = await trainer.getState();
  await writeCheckpoint(join(folder, CHECKPOINTS), trainer.step, { optimizer, rest }, async (checkpoint) =>
    trainer.model.savePretrained(checkpoint),
  );
}

/** sft/loss, sft/eval_loss, ... */
function named(numbers: object): Record<string, number> {
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [`sft/${name}`, value as number]));
}
