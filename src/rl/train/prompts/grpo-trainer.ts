import { printWarning } from "../../../core/terminal-text.js";
import { fs } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";
import { resolveSettings, selectSettings } from "../../../core/settings.js";
import { stream } from "../../../core/random/streams.js";
import { policySamplingSettings } from "../../../generation/generation-options.js";
import { openTrainable } from "../../../generation/auto-model.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import { readJson, withFolderLock, writeJson, type FolderLock } from "../../../models/files/index.js";
import { createLearner } from "../../algorithms/create-learner.js";
import { completionSettings, isTruncatedSampling, type CompletionSettings } from "../../rollout/rollout-settings.js";
import type { GroupSpec, Learner, Metrics } from "../../algorithms/learner.js";
import { loadPromptDataset, type EncodedRow } from "../../data/prompt-dataset.js";
import { combineTrackers, openRunTrackers, type Tracker } from "../../tracking/index.js";
import { checkNoCheckpoints, restoreLatestCheckpoint } from "../checkpoints.js";
import { runTrainLoop } from "../train-loop.js";
import type { ResumedRun } from "../train-task.js";
import { loopSettings, maxRolloutBytes } from "../trainer-settings.js";
import { ENTROPY_FLOOR, TrainingMonitor } from "../training-monitor.js";
import { PromptRollout } from "./prompt-rollout.js";
import { PromptTask } from "./prompt-task.js";
import {
  checkTrainerOptions,
  resolveTrainerConfig,
  type PromptAlgorithm,
  type PromptTrainConfig,
  type PromptTrainerOptions,
} from "./prompt-trainer-options.js";
import { RewardScorer } from "./reward-scorer.js";

/** Callbacks and trackers of a trainer on prompts. */
export interface PromptTrainOptions {
  /** Resumes from the newest checkpoint in outputDir, if there is one. */
  readonly resumeFromCheckpoint?: boolean;
  /** Called after each update. */
  readonly onStep?: (step: number, metrics: Metrics) => void;
  /** Ends the run after the current update, with a checkpoint. */
  readonly signal?: AbortSignal;
}

/** Outcome of a trainer on prompts. */
export interface PromptTrainResult {
  /** Total number of updates. */
  readonly globalStep: number;
  /** Metrics of the last update. */
  readonly metrics: Metrics;
  /** Whether `signal` ended the run early. */
  readonly isInterrupted: boolean;
}

const CHECKPOINTS_FOLDER = "checkpoints";

/** Trains a model on prompts with reward functions; `GrpoTrainer` and `RlooTrainer` add the algorithm. */
class PromptTrainer<Algorithm extends PromptAlgorithm> {
  readonly config: PromptTrainConfig;
  private readonly algorithmConfig;
  private readonly scorer: RewardScorer;
  private readonly monitor: TrainingMonitor;
  private readonly onWarning: (message: string) => void;
  private openedModel: LanguageModel | undefined;
  private isRunning = false;

  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(
    name: string,
    private readonly algorithm: Algorithm,
    private readonly options: PromptTrainerOptions<Algorithm>,
  ) {
    checkTrainerOptions(name, options);
    const { config, algorithmConfig } = resolveTrainerConfig(name, algorithm, options.args ?? {});
    this.config = config;
    this.algorithmConfig = algorithmConfig;
    const { onWarning = printWarning, rewardFuncs, rewardWeights } = options;
    this.onWarning = onWarning;
    this.monitor = new TrainingMonitor({ entropyFloor: ENTROPY_FLOOR, onWarning });
    this.scorer = new RewardScorer(rewardFuncs, {
      rewardWeights,
      timeoutSeconds: config.rewardTimeoutSeconds,
      onWarning,
    });
  }

  /** The trained model; undefined before `train` opens a model given by name. */
  get model(): LanguageModel | undefined {
    return this.openedModel ?? (typeof this.options.model === "string" ? undefined : this.options.model);
  }

  /**
   * Trains for maxSteps updates or numTrainEpochs epochs. Checks the dataset, the prompts' lengths and the output folder before
   * the first completion is sampled.
   * @throws INVALID_ARGUMENT for resumeFromCheckpoint without outputDir; INVALID_STATE while `train` is running, for a model
   * without trainable parameters, and for an output folder that contains another run; FOLDER_IN_USE while another process writes
   * to it; FILE_CORRUPT, INVALID_ARGUMENT or
   * CONTEXT_OVERFLOW for invalid rows; REWARD_FAILED; TRAINING_DIVERGED.
   */
  async train(options: PromptTrainOptions = {}): Promise<PromptTrainResult> {
    const { outputDir } = this.config;
    if (this.isRunning) throw new LlamaGymError("INVALID_STATE", "This trainer is already training; await it.");
    if (options.resumeFromCheckpoint === true && outputDir === undefined)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        "resumeFromCheckpoint needs args.outputDir, the folder that contains the checkpoints.",
      );
    this.isRunning = true;
    try {
      const model = await this.openModel();
      const rows = await loadPromptDataset(this.options.trainDataset, model, this.algorithmConfig.maxCompletionLength);
      const learner = await this.createLearner(model);
      try {
        return await withFolderLock(outputDir, async (lock) =>
          this.run(this.createTask(model, rows, learner), options, lock),
        );
      } finally {
        await learner.release();
      }
    } finally {
      this.isRunning = false;
    }
  }

  /**
   * Saves the trained parameters and the tokenizer to a folder, outputDir by default.
   * @throws INVALID_STATE before `train` opened the model, and without a folder.
   */
  async saveModel(folder: string | undefined = this.config.outputDir): Promise<void> {
    const { model } = this;
    if (model === undefined || folder === undefined) {
      const missing = model === undefined ? "there is no model before train()" : "name a folder, or set outputDir";
      throw new LlamaGymError("INVALID_STATE", `There is nothing to save: ${missing}.`);
    }
    await model.savePretrained(folder);
  }

  /** Closes a model that this trainer opened. */
  async close(): Promise<void> {
    await this.openedModel?.close();
    this.openedModel = undefined;
  }

  private async run(
    task: PromptTask,
    { resumeFromCheckpoint = false, onStep, signal }: PromptTrainOptions,
    lock: FolderLock | undefined,
  ): Promise<PromptTrainResult> {
    const { outputDir } = this.config;
    const checkpointDir = outputDir === undefined ? undefined : fs.join(outputDir, CHECKPOINTS_FOLDER);
    const resumed = resumeFromCheckpoint
      ? await restoreLatestCheckpoint(checkpointDir, () => task, this.onWarning)
      : undefined;
    if (!resumeFromCheckpoint)
      await checkNoCheckpoints(
        checkpointDir,
        "Resume it with train({ resumeFromCheckpoint: true }), or choose another outputDir.",
      );
    const tracker = await this.openTracker(resumed);
    try {
      const { state, metrics, isInterrupted } = await runTrainLoop(task, {
        resumed,
        checkpointDir,
        lock,
        ...selectSettings(loopSettings, this.config),
        tracker,
        monitor: this.monitor,
        onUpdate: (event) => onStep?.(event.state.updates, event.metrics),
        signal,
      });
      await tracker.close("finished");
      return { globalStep: state.updates, metrics, isInterrupted };
    } catch (error) {
      await tracker.close("failed");
      throw error;
    }
  }

  private async openModel(): Promise<LanguageModel> {
    const { model, peftConfig } = this.options;
    if (typeof model !== "string") return model;
    this.openedModel ??= await openTrainable(model, { peftConfig, valueHead: null });
    return this.openedModel;
  }

  private async createLearner(model: LanguageModel): Promise<Learner> {
    const { temperature, seed, microBatchTokens } = this.config;
    return createLearner(model, {
      [this.algorithm]: { ...this.algorithmConfig, ...this.getRewardWeights() },
      temperature,
      isTruncatedSampling: isTruncatedSampling(this.completionSettings),
      random: stream(seed, "learner"),
      microBatchTokens,
    });
  }

  private get completionSettings(): CompletionSettings {
    const { config, algorithmConfig } = this;
    return {
      ...resolveSettings("A trainer", completionSettings, selectSettings(completionSettings, config)),
      sampling: selectSettings(policySamplingSettings, config),
      maxNewTokens: algorithmConfig.maxCompletionLength,
      stop: [],
      ignoreEos: config.ignoreEos,
    };
  }

  /** Returns the weights for GRPO, which may normalize each function's rewards before weighting them. */
  private getRewardWeights(): { readonly rewardWeights?: readonly number[] } {
    return this.algorithm === "grpo" ? { rewardWeights: this.options.rewardWeights } : {};
  }

  private createTask(model: LanguageModel, rows: readonly EncodedRow[], learner: Learner): PromptTask {
    const { config, algorithmConfig, scorer } = this;
    const { seed, shuffleDataset: shuffle } = config;
    const { batchSize, numGenerations } = algorithmConfig;
    const settings = this.completionSettings;
    const { groups } = learner.rolloutSpec as GroupSpec;
    return new PromptTask({
      model,
      learner,
      rollouts: config.rollouts,
      promptRollout: new PromptRollout(model, { rows, settings, scorer, seed, shuffle }),
      totalSteps: config.maxSteps ?? Math.ceil(config.numTrainEpochs * Math.ceil(rows.length / groups)),
      fingerprint: { seed, rows: rows.length, batchSize, numGenerations },
    });
  }

  private async openTracker(resumed: ResumedRun | undefined): Promise<Required<Tracker>> {
    const { outputDir, tensorboard } = this.config;
    const rolloutBytes = maxRolloutBytes(this.config);
    const { onWarning, options } = this;
    const { trackers = [] } = options;
    if (outputDir === undefined) return combineTrackers(trackers, { onWarning });
    const configPath = fs.join(outputDir, "config.json");
    await writeJson(configPath, { ...this.config, ...this.algorithmConfig });
    const settings = await readJson(configPath);
    const resumeFromStep = resumed?.state.updates;
    const tracker = openRunTrackers(outputDir, {
      tensorboard,
      maxRolloutBytes: rolloutBytes,
      trackers,
      onWarning,
      resumeFromStep,
    });
    await tracker.logConfig(settings);
    return tracker;
  }
}

/** Options of `GrpoTrainer`, named as TRL's. */
export type GrpoTrainerOptions = PromptTrainerOptions<"grpo">;
/** Options of `RlooTrainer`, named as TRL's. */
export type RlooTrainerOptions = PromptTrainerOptions<"rloo">;

/** Trains a model on prompts with reward functions by GRPO, like TRL's GRPOTrainer. */
export class GrpoTrainer extends PromptTrainer<"grpo"> {
  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(options: GrpoTrainerOptions) {
    super("GrpoTrainer", "grpo", options);
  }
}

/** Trains a model on prompts with reward functions by RLOO, like TRL's RLOOTrainer. */
export class RlooTrainer extends PromptTrainer<"rloo"> {
  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(options: RlooTrainerOptions) {
    super("RlooTrainer", "rloo", options);
  }
}
