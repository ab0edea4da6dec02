import { checkOptions } from "../../../core/settings.js";
import { printWarning } from "../../../core/terminal-text.js";
import { LlamaGymError } from "../../../core/errors.js";
import { openTrainable, type LanguageModel } from "../../../generation/index.js";
import { withFolderLock, type FolderLock } from "../../../core/files/folder-lock.js";
import type { Metrics } from "../../algorithms/learner.js";
import { combineTrackers, openRunTrackers, type Tracker } from "../../tracking/index.js";
import { checkNoCheckpoints } from "../checkpoints.js";
import { getCheckpointDir, writeRunConfig } from "../run-config.js";
import { maxRolloutBytes } from "../trainer-settings.js";
import {
  checkTrainerOptions,
  resolveTrainerConfig,
  type AnyTrainerOptions,
  type PromptAlgorithm,
  type PromptTrainerOptions,
  type ToolTrainerOptions,
} from "./prompt-trainer-options.js";
import { PromptTraining } from "./prompt-training.js";
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

/**
 * Trains a model on prompts with reward functions; `GrpoTrainer` and `RlooTrainer` add the
 * algorithm.
 */
class PromptTrainer<Algorithm extends PromptAlgorithm> {
  readonly config;
  private readonly algorithmConfig;
  private readonly scorer: RewardScorer;
  private readonly onWarning: (message: string) => void;
  private openedModel: LanguageModel | undefined;
  private isRunning = false;

  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(
    name: string,
    private readonly algorithm: Algorithm,
    private readonly options: AnyTrainerOptions<Algorithm>,
  ) {
    checkTrainerOptions(name, algorithm, options);
    const { config, algorithmConfig } = resolveTrainerConfig(name, algorithm, options.args ?? {});
    this.config = config;
    this.algorithmConfig = algorithmConfig;
    const { onWarning = printWarning, rewardFuncs, rewardWeights } = options;
    this.onWarning = onWarning;
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
   * Trains for maxSteps updates or numTrainEpochs epochs. Checks the dataset, the prompts' lengths
   * and the output folder before the first completion is sampled.
   * @throws INVALID_ARGUMENT for resumeFromCheckpoint without outputDir; INVALID_STATE while
   * `train` is running, for a model without trainable parameters, and for an output folder that
   * contains another run; FOLDER_IN_USE while another process writes to it; FILE_CORRUPT,
   * INVALID_ARGUMENT or CONTEXT_OVERFLOW for invalid rows; REWARD_FAILED; TRAINING_DIVERGED.
   */
  async train(options: PromptTrainOptions = {}): Promise<PromptTrainResult> {
    checkOptions("train", options, { resumeFromCheckpoint: true, onStep: Function, signal: AbortSignal });
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
      const { algorithm, config, algorithmConfig, scorer, onWarning } = this;
      const { trainDataset, evalDataset, chatTemplateKwargs, tools, teacher } = this.options;
      const training = await PromptTraining.open(model, {
        algorithm,
        config,
        algorithmConfig,
        trainDataset,
        evalDataset,
        evalSteps: config.evalSteps,
        numGenerationsEval: config.numGenerationsEval,
        chatTemplateKwargs,
        tools,
        scorer,
        teacher,
        onWarning,
      });
      try {
        return await withFolderLock(outputDir, async (lock) => this.run(training, options, lock));
      } finally {
        await training.release();
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
    training: PromptTraining,
    { resumeFromCheckpoint = false, onStep, signal }: PromptTrainOptions,
    lock: FolderLock | undefined,
  ): Promise<PromptTrainResult> {
    const { outputDir } = this.config;
    const checkpointDir = outputDir === undefined ? undefined : getCheckpointDir(outputDir);
    const resumedAt = resumeFromCheckpoint ? await training.resume(checkpointDir) : undefined;
    if (resumedAt === undefined)
      await checkNoCheckpoints(
        checkpointDir,
        "Resume it with train({ resumeFromCheckpoint: true }), or choose another outputDir.",
      );
    const tracker = await this.openTracker(resumedAt);
    try {
      const { state, metrics, isInterrupted } = await training.train({
        checkpointDir,
        lock,
        tracker,
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

  private async openTracker(resumeFromStep: number | undefined): Promise<Required<Tracker>> {
    const { config, algorithm, algorithmConfig, onWarning, options } = this;
    const { outputDir, tensorboard } = config;
    const { trackers = [], model } = options;
    if (outputDir === undefined) return combineTrackers(trackers, { onWarning });
    const name = typeof model === "string" ? { model } : {};
    const settings = await writeRunConfig(outputDir, { ...name, algorithm, ...config, ...algorithmConfig });
    const maxBytes = maxRolloutBytes(config);
    const trackerOptions = { tensorboard, maxRolloutBytes: maxBytes, trackers, onWarning, resumeFromStep };
    const tracker = openRunTrackers(outputDir, trackerOptions);
    await tracker.logConfig(settings);
    return tracker;
  }
}

/** Options of `GrpoTrainer`, named as TRL's. */
export type GrpoTrainerOptions = PromptTrainerOptions<"grpo">;
/** Options of `RlooTrainer`, named as TRL's. */
export type RlooTrainerOptions = PromptTrainerOptions<"rloo">;

/**
 * Trains a model on prompts by GRPO with reward functions, like TRL's GRPOTrainer, or with a
 * teacher, like its GKDTrainer on the student's completions.
 */
export class GrpoTrainer extends PromptTrainer<"grpo"> {
  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(options: GrpoTrainerOptions);
  constructor(options: ToolTrainerOptions<"grpo">);
  constructor(options: AnyTrainerOptions<"grpo">) {
    super("GrpoTrainer", "grpo", options);
  }
}

/** Trains a model on prompts with reward functions by RLOO, like TRL's RLOOTrainer. */
export class RlooTrainer extends PromptTrainer<"rloo"> {
  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(options: RlooTrainerOptions);
  constructor(options: ToolTrainerOptions<"rloo">);
  constructor(options: AnyTrainerOptions<"rloo">) {
    super("RlooTrainer", "rloo", options);
  }
}
