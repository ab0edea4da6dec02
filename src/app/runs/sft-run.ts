import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { stream } from "../../core/random/streams.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { DownloadProgress, FolderLock } from "../../models/files/index.js";
import { toReadError } from "../../models/files/file-errors.js";
import type { SftEvaluation, SftMetrics } from "../../rl/algorithms/sft/sft-learner.js";
import { readExamples, type InvalidLine } from "../../rl/data/read-examples.js";
import type { SftExample } from "../../rl/data/sft-example.js";
import type { TrackerSource } from "../../rl/tracking/index.js";
import { SftTrainer } from "../../rl/train/sft-trainer.js";
import { openRunModel } from "./open-model.js";
import { checkUnchanged } from "./run.js";
import { checkNewRunFolder, checkWritable, getCheckpointDir, openLocked, requireRunConfig } from "./run-folder.js";
import { RunRecords } from "./run-records.js";
import {
  allSftRunSettings,
  dataSettings,
  getSftConfig,
  resolveSftRunConfig,
  type SftRunConfig,
  type SftRunOptions,
} from "./sft-run-settings.js";

/** Folder of the trained adapter or model. */
const RESULT_FOLDER = "model";

export interface SftRunHooks {
  /** Additional trackers. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Receives warnings that do not stop the run. */
  readonly onWarning?: (message: string) => void;
}

export interface SftRunCallbacks {
  readonly onStep?: (metrics: SftMetrics) => void;
  readonly onEvaluation?: (evaluation: SftEvaluation, step: number) => void;
  /** Ends the run after the current update, with a checkpoint. */
  readonly signal?: AbortSignal;
}

/** An open run of supervised fine-tuning. */
export interface SftRun {
  readonly config: SftRunConfig;
  readonly folder: string;
  readonly trainer: SftTrainer;
  /** Updates made before the run was resumed. */
  readonly resumedAt: number;
  readonly invalidLines: readonly InvalidLine[];
  /** Columns of the data that are not part of any example. */
  readonly unusedColumns: readonly string[];
  /** Makes the remaining updates and returns whether `signal` ended the run early. */
  train(callbacks?: SftRunCallbacks): Promise<boolean>;
  /** Saves the trained parameters to FOLDER/model and returns that path. */
  saveResult(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Starts a run in a new folder. Nothing is written before the model and the examples are loaded.
 * @throws INVALID_ARGUMENT for invalid settings and examples, FILE_CORRUPT for an invalid line, INVALID_STATE for a folder that
 * contains a run.
 */
export async function startSftRun(options: SftRunOptions, folder: string, hooks: SftRunHooks = {}): Promise<SftRun> {
  const config = await hashData(resolveSftRunConfig(options));
  return openLocked(folder, checkNewRunFolder, async (lock) => openRun(config, lock, hooks, false));
}

/**
 * Resumes a run from its newest checkpoint, or from its start if it has none. Only settings that are `changeable` may change; `data`
 * and `evalData` name the same contents at another path.
 * @throws FILE_NOT_FOUND for a folder without a run and for missing data, RUN_INCOMPATIBLE for a run of another version and for
 * changed data, INVALID_ARGUMENT for other changes, and as `startSftRun`.
 */
export async function resumeSftRun(
  folder: string,
  changes: Partial<SftRunOptions> = {},
  hooks: SftRunHooks = {},
): Promise<SftRun> {
  const saved = await requireRunConfig<SftRunOptions>(folder);
  if (saved.data === undefined)
    throw invalidArgument(`The run in ${folder} is not one of sft. Resume it with the command that started it.`);
  checkUnchanged({ ...dataSettings, ...allSftRunSettings }, resolveSftRunConfig(saved), changes, folder);
  const config = await hashData(resolveSftRunConfig({ ...saved, ...changes }), saved, folder);
  return openLocked(folder, checkWritable, async (lock) => openRun(config, lock, hooks, true));
}

/** Adds the hashes of the data, and compares them with those of the run to resume. @throws FILE_NOT_FOUND, RUN_INCOMPATIBLE */
async function hashData(config: SftRunConfig, saved?: SftRunOptions, folder?: string): Promise<SftRunConfig> {
  const hash = async (name: "data" | "evalData"): Promise<string | undefined> => {
    const path = config[name];
    if (path === undefined) return undefined;
    const option = name === "data" ? "--data" : "--eval-data";
    const content = await readFile(path).catch((error: unknown) => {
      const { code, message } = toReadError(path, error);
      const advice = saved === undefined ? "" : ` If it was moved, give its new path with ${option} FILE.`;
      throw new LlamaGymError(code, message + advice, { cause: error });
    });
    const sha256 = createHash("sha256").update(content).digest("hex");
    const before = saved?.[`${name}Sha256`];
    if (before === undefined || before === sha256) return sha256;
    throw new LlamaGymError(
      "RUN_INCOMPATIBLE",
      `${path} has changed since the run in ${folder} started, so the run cannot be resumed on it. Restore the file, or give ` +
        `${option} the path of an unchanged copy, or start a new run.`,
    );
  };
  return { ...config, dataSha256: await hash("data"), evalDataSha256: await hash("evalData") };
}

async function openRun(
  config: SftRunConfig,
  lock: FolderLock,
  { trackers = [], onDownload, onWarning = () => {} }: SftRunHooks,
  isResumed: boolean,
): Promise<SftRun> {
  const { folder } = lock;
  const model = await openRunModel(config, { valueHead: "saved", onDownload });
  try {
    const { examples, evalExamples, invalidLines, unusedColumns } = await readData(config, model);
    const trainer = await SftTrainer.create(model, {
      ...getSftConfig(config),
      train: examples,
      evaluation: evalExamples,
    });
    const checkpointDir = getCheckpointDir(folder);
    const resumedAt = isResumed ? await trainer.resume(checkpointDir, onWarning) : 0;
    const recordOptions = { trackers, onWarning, resumedAt: isResumed ? resumedAt : undefined };
    const records = await RunRecords.open(folder, config, recordOptions);
    return {
      config,
      folder,
      trainer,
      resumedAt,
      invalidLines,
      unusedColumns,
      train: async (callbacks) => {
        const { saveSteps, evalSteps } = config;
        const options = { tracker: records.tracker, checkpointDir, lock, saveSteps, evalSteps, ...callbacks };
        return (await records.watch(trainer.train(options))).isInterrupted;
      },
      saveResult: async () => {
        const path = join(folder, RESULT_FOLDER);
        await lock.verify();
        await model.savePretrained(path);
        return path;
      },
      close: async () => {
        await records.close();
        await model.close();
        await lock.release();
      },
    };
  } catch (error) {
    await model.close();
    throw error;
  }
}

interface SftRunData {
  readonly examples: readonly SftExample[];
  readonly evalExamples: readonly SftExample[];
  readonly invalidLines: readonly InvalidLine[];
  readonly unusedColumns: readonly string[];
}

async function readData(config: SftRunConfig, model: LanguageModel): Promise<SftRunData> {
  const { data, evalData, evalSplit, onInvalidLine, seed } = config;
  const hasTemplate = model.hasTokenizer && model.tokenizer.chatTemplates.size > 0;
  const prompts = config.prompts === "auto" ? (hasTemplate ? "chat" : "text") : config.prompts;
  const loaded = await readExamples(data, { onInvalidLine, prompts });
  if (evalData !== undefined) {
    const kept = await readExamples(evalData, { onInvalidLine, prompts });
    return {
      examples: loaded.examples,
      evalExamples: kept.examples,
      invalidLines: [...loaded.invalidLines, ...kept.invalidLines],
      unusedColumns: Array.from(new Set([...loaded.unusedColumns, ...kept.unusedColumns])),
    };
  }
  const order = stream(seed, "sftSplit").permutation(loaded.examples.length);
  const count = Math.round(evalSplit * order.length);
  const select = (indices: readonly number[]) => indices.map((i) => loaded.examples[i]);
  return { ...loaded, examples: select(order.slice(count)), evalExamples: select(order.slice(0, count)) };
}
