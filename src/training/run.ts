import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { TextAgent } from "../agent/text-agent.js";
import { ppoSettings, type PpoOptions } from "../algorithms/ppo/config.js";
import { makeAsync } from "../envs/bridges/make-async.js";
import type { Env } from "../envs/env.js";
import { LlamaGymError } from "../errors.js";
import { readJson, writeJson, type DownloadProgress, type JsonObject } from "../files/index.js";
import { AutoModelForCausalLMWithValueHead } from "../generation/auto.js";
import type { LanguageModel } from "../generation/language-model.js";
import { combineTrackers, openJsonlTracker, type TrackerSource } from "../tracking/index.js";
import { resolveTrainConfig, type TrainConfig, type TrainOptions } from "./settings.js";
import { Trainer, type TrainingResult, type WatchOptions } from "./trainer.js";

/** The layout of a run folder; another one is refused. */
const VERSION = 1;
const CONFIG_FILE = "config.json";
const CHECKPOINTS = "checkpoints";
/** The folder of the finished adapter. */
const ADAPTER = "adapter";

export interface RunOptions {
  /** More that watches the run, beside metrics.jsonl and samples.jsonl. */
  readonly trackers?: readonly TrackerSource[];
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Told what is worth knowing and no error. */
  readonly warn?: (message: string) => void;
}

/** A training run, open: its settings, its agent, and the folder that keeps it. */
export interface Run {
  readonly config: TrainConfig;
  readonly folder: string;
  readonly agent: TextAgent;
  train(watch?: Omit<WatchOptions, "tracker">): Promise<TrainingResult>;
  /** Updates that were made before it was opened. */
  readonly resumedAt: number;
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
  if ((await readConfig(folder)) !== undefined) {
    throw new LlamaGymError(
      "INVALID_STATE",
      `${folder} holds a run already. Go on with it by --resume ${folder}, or choose another --output.`,
    );
  }
  return openRun(config, folder, extras, false);
}

/**
 * Goes on with a run from its newest checkpoint; more episodes or turns may be asked for.
 * Throws FILE_NOT_FOUND for a folder without a run, RUN_INCOMPATIBLE for one of another version, and what startRun throws.
 */
export async function resumeRun(
  folder: string,
  changes: Pick<TrainOptions, "episodes" | "turns"> = {},
  extras: RunOptions = {},
): Promise<Run> {
  const saved = await readConfig(folder);
  if (saved === undefined)
    throw new LlamaGymError("FILE_NOT_FOUND", `There is no run in ${folder}: it has no ${CONFIG_FILE}.`);
  const { version, ...options } = saved;
  if (version !== VERSION) {
    throw new LlamaGymError(
      "RUN_INCOMPATIBLE",
      `The run in ${folder} was made by another version of llamagym (layout ${JSON.stringify(version)}, this one reads ${VERSION}).`,
    );
  }
  return openRun(resolveTrainConfig({ ...(options as unknown as TrainOptions), ...changes }), folder, extras, true);
}

async function readConfig(folder: string): Promise<JsonObject | undefined> {
  return readJson(join(folder, CONFIG_FILE)).catch((error: unknown) => {
    if (error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND") return undefined;
    throw error;
  });
}

async function openRun(
  config: TrainConfig,
  folder: string,
  { trackers = [], onDownload, warn = () => {} }: RunOptions,
  resumed: boolean,
): Promise<Run> {
  const makeEnv = async () =>
    makeAsync(config.env, {
      ...config.envOptions,
      ...(config.maxSteps === undefined ? {} : { maxEpisodeSteps: config.maxSteps }),
    });
  const agentOf = await agentMaker(config, makeEnv);
  const model = await openModel(config, onDownload);
  try {
    const agent = agentOf(model);
    await agent.learner();
    await mkdir(folder, { recursive: true }).catch((error: unknown) => {
      throw new LlamaGymError("FILE_WRITE_FAILED", `The run folder ${folder} cannot be made: ${String(error)}`);
    });
    const checkpoints = join(folder, CHECKPOINTS);
    const { episodes, turns, numEnvs, seed, saveEvery } = config;
    const settings: JsonObject = JSON.parse(JSON.stringify({ version: VERSION, ...config })) as JsonObject;
    const trainer = new Trainer({ agent, env: makeEnv, episodes, turns, numEnvs, seed, saveEvery, checkpoints });
    const resumedAt = resumed ? await trainer.resume() : 0;
    const resume = resumed ? { resumeFrom: resumedAt } : {};
    const tracker = combineTrackers([() => openJsonlTracker(folder, resume), ...trackers], { warn });
    await writeJson(join(folder, CONFIG_FILE), settings);
    await tracker.config(settings);
    return {
      config,
      folder,
      agent,
      train: async (watch) => trainer.train({ ...watch, tracker }),
      resumedAt,
      makeEnv,
      saveAdapter: async () => {
        const path = join(folder, ADAPTER);
        await agent.save(path);
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

/** Looks at the environment before a model is opened; what it gives makes the agent. */
async function agentMaker(
  config: TrainConfig,
  makeEnv: () => Promise<Env>,
): Promise<(model: LanguageModel) => TextAgent> {
  const env = await makeEnv();
  const { text, actionSpace } = env;
  await env.close();
  if (text === undefined) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `${config.env} has no text form, so a language model cannot play it; give it a \`text\`, or write an Agent for it.`,
    );
  }
  const { maxNewTokens, temperature, topK, topP, historyTurns, maxContext, replies, seed, maxTokens } = config;
  return (model) =>
    new TextAgent(model, text, {
      generation: { maxNewTokens, temperature, topK, topP },
      historyTurns,
      maxContext,
      replies,
      seed,
      maxTokens,
      invalidReply: {
        retries: config.invalidRetries,
        penalty: config.invalidPenalty,
        fallback: (_observation, random) => {
          actionSpace.seed(random.integers(0, 2 ** 31));
          return actionSpace.sample();
        },
      },
      ppo: ppoOptions(config),
    });
}

/** The algorithm's own settings of a run. */
function ppoOptions(config: TrainConfig): PpoOptions {
  return Object.fromEntries(Object.keys(ppoSettings).map((name) => [name, config[name as keyof typeof ppoSettings]]));
}

/** Opens the run's model with what is trained of it. */
async function openModel(config: TrainConfig, onProgress: RunOptions["onDownload"]): Promise<LanguageModel> {
  const { model, adapter, device, threads, quantise, train, r, loraAlpha, loraDropout, targetModules, seed } = config;
  const targets = targetModules === "all-linear" ? targetModules : targetModules.split(",").map((name) => name.trim());
  return AutoModelForCausalLMWithValueHead.fromPretrained(model, {
    adapter,
    device,
    threads,
    quantise: quantise === "none" ? undefined : quantise === "8" ? 8 : 4,
    peftConfig: train === "all" ? null : { r, loraAlpha, loraDropout, targetModules: targets, seed },
    valueHead: { kind: config.valueHead, dropout: config.valueHeadDropout },
    onProgress,
  });
}
