import { join } from "node:path";
import { createLearner } from "../../algorithms/create-learner.js";
import type { GroupSpec, Learner, Metrics } from "../../algorithms/learner.js";
import { LlamaGymError } from "../../../core/errors.js";
import { writeJson, type JsonObject } from "../../../models/files/index.js";
import { openTrainable } from "../../../generation/auto-model.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { CompletionSettings } from "../../rollout/rollout-settings.js";
import type { Trajectory } from "../../rollout/trajectory.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { combineTrackers, openRunTrackers, type Tracker } from "../../tracking/index.js";
import { findLatestCheckpoint, readCheckpoint, writeCheckpoint } from "../checkpoint-folder.js";
import { ENTROPY_FLOOR, TrainingMonitor } from "../training-monitor.js";
import { collectGroups } from "../collect-groups.js";
import { resolveTrainerConfig, type PromptAlgorithm, type PromptTrainConfig } from "./prompt-train-config.js";
import { loadPromptDataset, type EncodedRow } from "../../data/prompt-dataset.js";
import { checkTrainerOptions, type PromptTrainerOptions } from "./prompt-trainer-options.js";
import { PromptRollout, type CompletionSample, type PromptRolloutState } from "./prompt-rollout.js";
import { RewardScorer } from "./reward-scorer.js";

export interface PromptTrainOptions {
  /** Goes on from the newest checkpoint in outputDir, if there is one. */
  readonly resumeFromCheckpoint?: boolean;
  /** Called after each update. */
  readonly onStep?: (step: number, metrics: Metrics) => void;
  /** Ends the run after the update that is under way, with a checkpoint. */
  readonly signal?: AbortSignal;
}

export interface PromptTrainResult {
  /** Updates that were made in all. */
  readonly globalStep: number;
  /** Those of the last update. */
  readonly metrics: Metrics;
  /** True when `signal` ended it. */
  readonly isInterrupted: boolean;
}

/** What a checkpoint keeps besides the model and the optimiser. */
interface PromptCheckpoint {
  readonly step: number;
  readonly tokens: number;
  readonly promptRollout: PromptRolloutState;
  readonly learner: unknown;
  /** What must be the same for the run to go on. */
  readonly fingerprint: RunFingerprint;
}

interface RunFingerprint {
  readonly seed: number;
  readonly rows: number;
  readonly batchSize: number;
  readonly numGenerations: number;
}

/** The learner's random stream; a child of the seed. */
const LEARNER_STREAM = 1;
const CHECKPOINTS_FOLDER = "checkpoints";
const LOGGED_COMPLETIONS = 4;

/** Trains a model on prompts by what reward functions say of its completions. `GrpoTrainer` and `RlooTrainer` are this with an algorithm. */
export class PromptTrainer<Algorithm extends PromptAlgorithm> {
  readonly config: PromptTrainConfig;
  private readonly algorithmConfig;
  private readonly scorer: RewardScorer;
  private readonly monitor: TrainingMonitor;
  private openedModel: LanguageModel | undefined;
  private step = 0;
  private tokens = 0;
  private metrics: Metrics = {};
  private isRunning = false;

  /** Throws INVALID_ARGUMENT for options that cannot be. */
  constructor(
    name: string,
    private readonly algorithm: Algorithm,
    private readonly options: PromptTrainerOptions<Algorithm>,
  ) {
    checkTrainerOptions(name, options);
    const { config, algorithmConfig } = resolveTrainerConfig(name, algorithm, options.args ?? {});
    this.config = config;
    this.algorithmConfig = algorithmConfig;
    const onWarning = (message: string) => this.warn(message);
    this.monitor = new TrainingMonitor({ entropyFloor: ENTROPY_FLOOR, onWarning });
    this.scorer = new RewardScorer(options.rewardFuncs, {
      rewardWeights: options.rewardWeights,
      timeoutSeconds: config.rewardTimeoutSeconds,
      onWarning,
    });
  }

  /** The model that is trained; undefined for one that was named, before it is opened by `train`. */
  get model(): LanguageModel | undefined {
    return this.openedModel ?? (typeof this.options.model === "string" ? undefined : this.options.model);
  }

  /**
   * Trains for maxSteps updates, or numTrainEpochs. The data set, the prompts' lengths and the output folder are checked before
   * anything is drawn. Throws INVALID_ARGUMENT for resumeFromCheckpoint without outputDir; INVALID_STATE while it trains already, for a model of which nothing is trained, and for an output
   * folder with another run's checkpoints; FILE_CORRUPT, INVALID_ARGUMENT or CONTEXT_OVERFLOW for rows that cannot be trained;
   * REWARD_FAILED, TRAINING_DIVERGED.
   */
  async train(options: PromptTrainOptions = {}): Promise<PromptTrainResult> {
    if (this.isRunning) throw new LlamaGymError("INVALID_STATE", "This trainer is training already; await it.");
    if (options.resumeFromCheckpoint === true && this.config.outputDir === undefined)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        "resumeFromCheckpoint needs args.outputDir, where the checkpoints are.",
      );
    this.isRunning = true;
    try {
      const model = await this.openModel();
      const rows = await loadPromptDataset(this.options.trainDataset, model, this.algorithmConfig.maxCompletionLength);
      const learner = await this.createLearner(model);
      try {
        return await this.run(model, rows, learner, options);
      } finally {
        await learner.release();
      }
    } finally {
      this.isRunning = false;
    }
  }

  /** Saves what is trained (and the tokenizer) to a folder, outputDir by default. Throws INVALID_STATE before `train`. */
  async saveModel(folder: string | undefined = this.config.outputDir): Promise<void> {
    const { model } = this;
    if (model === undefined || folder === undefined) {
      const missing = model === undefined ? "there is no model before train()" : "name a folder, or set outputDir";
      throw new LlamaGymError("INVALID_STATE", `Nothing can be saved: ${missing}.`);
    }
    await model.savePretrained(folder);
  }

  /** Closes a model that this trainer opened. */
  async close(): Promise<void> {
    await this.openedModel?.close();
    this.openedModel = undefined;
  }

  private async run(
    model: LanguageModel,
    rows: readonly EncodedRow[],
    learner: Learner,
    { resumeFromCheckpoint = false, onStep, signal }: PromptTrainOptions,
  ): Promise<PromptTrainResult> {
    const spec = learner.rolloutSpec as GroupSpec;
    const promptRollout = this.createRollout(model, rows);
    const isResumed = await this.resume(model, learner, promptRollout, rows.length, resumeFromCheckpoint);
    const tracker = await this.openTracker(isResumed);
    const updatesPerEpoch = Math.ceil(rows.length / spec.groups);
    const totalSteps = this.config.maxSteps ?? Math.ceil(this.config.numTrainEpochs * updatesPerEpoch);
    const isStopped = () => signal?.aborted === true;
    let saved = this.step;
    try {
      while (this.step < totalSteps && !isStopped()) {
        await this.update(learner, promptRollout, tracker, totalSteps);
        onStep?.(this.step, this.metrics);
        if (this.step % this.config.saveSteps === 0 || this.step === totalSteps || isStopped()) {
          await this.save(model, learner, promptRollout, rows.length);
          saved = this.step;
        }
      }
      if (saved < this.step) await this.save(model, learner, promptRollout, rows.length);
      await tracker.close("finished");
    } catch (error) {
      await tracker.close("failed");
      throw error;
    }
    return { globalStep: this.step, metrics: this.metrics, isInterrupted: this.step < totalSteps };
  }

  private async update(
    learner: Learner,
    promptRollout: PromptRollout,
    tracker: Tracker,
    totalSteps: number,
  ): Promise<void> {
    const start = performance.now();
    const { trajectories } = await collectGroups(promptRollout, learner.rolloutSpec as GroupSpec, {
      nextSeed: () => promptRollout.nextRow(),
    });
    const collectEnd = performance.now();
    const updateMetrics = await learner.update(trajectories, { progress: this.step / totalSteps });
    const end = performance.now();
    this.step++;
    const { metrics, samples } = promptRollout.flushRecords();
    this.tokens += trajectories.reduce((sum, { turns }) => sum + turns[0].tokens.length, 0);
    this.metrics = {
      ...computeCompletionMetrics(trajectories),
      ...metrics,
      ...updateMetrics,
      num_tokens: this.tokens,
      epoch: promptRollout.epoch,
      "time/rollout": (collectEnd - start) / 1000,
      "time/update": (end - collectEnd) / 1000,
      step_time: (end - start) / 1000,
    };
    this.monitor.check(this.metrics);
    await tracker.log(this.step, this.metrics);
    if ((this.step - 1) % this.config.completionLogSteps === 0)
      await tracker.logCompletions?.(this.step, samples.slice(0, LOGGED_COMPLETIONS).map(toCompletionRow));
  }

  private async openModel(): Promise<LanguageModel> {
    const { model, peftConfig } = this.options;
    if (typeof model !== "string") return model;
    this.openedModel ??= await openTrainable(model, { peftConfig, valueHead: null });
    return this.openedModel;
  }

  private async createLearner(model: LanguageModel): Promise<Learner> {
    const { temperature, topK, topP, minP, repetitionPenalty, seed, microBatchTokens } = this.config;
    return createLearner(model.causalLM, {
      [this.algorithm]: { ...this.algorithmConfig, ...this.getRewardWeights() },
      temperature,
      isTruncatedSampling: topK > 0 || topP < 1 || minP > 0 || repetitionPenalty !== 1,
      random: new RandomStream(seed, [LEARNER_STREAM]),
      microBatchTokens,
    });
  }

  /** Only GRPO can normalise each function's rewards by themselves, and weights them afterwards. */
  private getRewardWeights(): { readonly rewardWeights?: readonly number[] } {
    return this.algorithm === "grpo" ? { rewardWeights: this.options.rewardWeights } : {};
  }

  private createRollout(model: LanguageModel, rows: readonly EncodedRow[]): PromptRollout {
    const { temperature, topK, topP, minP, repetitionPenalty, ignoreEos, seed, shuffleDataset } = this.config;
    const settings: CompletionSettings = {
      sampling: { temperature, topK, topP, minP, repetitionPenalty },
      maxNewTokens: this.algorithmConfig.maxCompletionLength,
      stop: [],
      scoring: undefined,
      ignoreEos,
    };
    return new PromptRollout(model, { rows, settings, scorer: this.scorer, seed, shuffle: shuffleDataset });
  }

  /** Whether it goes on from a checkpoint. */
  private async resume(
    model: LanguageModel,
    learner: Learner,
    promptRollout: PromptRollout,
    rows: number,
    mayResume: boolean,
  ): Promise<boolean> {
    const { outputDir } = this.config;
    const folder =
      outputDir === undefined ? undefined : await findLatestCheckpoint(join(outputDir, CHECKPOINTS_FOLDER));
    if (folder === undefined) return false;
    if (!mayResume) {
      throw new LlamaGymError(
        "INVALID_STATE",
        `${outputDir} holds the checkpoints of a run. Go on with it by train({ resumeFromCheckpoint: true }), or choose another outputDir.`,
      );
    }
    const { optimizer, state: saved } = await readCheckpoint<PromptCheckpoint>(folder);
    this.checkFingerprint(saved.fingerprint, rows);
    await model.loadTrainedValues(folder);
    await learner.setState({ optimizer, state: saved.learner });
    promptRollout.setState(saved.promptRollout);
    this.step = saved.step;
    this.tokens = saved.tokens;
    return true;
  }

  private fingerprint(rows: number): RunFingerprint {
    const { batchSize, numGenerations } = this.algorithmConfig;
    return { seed: this.config.seed, rows, batchSize, numGenerations };
  }

  private checkFingerprint(saved: RunFingerprint, rows: number): void {
    const current = this.fingerprint(rows);
    const other = (Object.keys(current) as (keyof RunFingerprint)[]).find((name) => current[name] !== saved[name]);
    if (other === undefined) return;
    throw new LlamaGymError(
      "RUN_INCOMPATIBLE",
      `The run in ${this.config.outputDir} has ${other} ${saved[other]}, this one ${current[other]}; it cannot go on with another.`,
    );
  }

  private async save(
    model: LanguageModel,
    learner: Learner,
    promptRollout: PromptRollout,
    rows: number,
  ): Promise<void> {
    const { outputDir } = this.config;
    if (outputDir === undefined) return;
    const { optimizer, state } = await learner.getState();
    const saved: PromptCheckpoint = {
      step: this.step,
      tokens: this.tokens,
      promptRollout: promptRollout.getState(),
      learner: state,
      fingerprint: this.fingerprint(rows),
    };
    await writeCheckpoint(join(outputDir, CHECKPOINTS_FOLDER), this.step, { optimizer, state: saved }, async (folder) =>
      model.savePretrained(folder),
    );
  }

  private async openTracker(isResumed: boolean): Promise<Required<Tracker>> {
    const { outputDir, tensorboard } = this.config;
    const { trackers = [] } = this.options;
    const onWarning = (message: string) => this.warn(message);
    if (outputDir === undefined) return combineTrackers(trackers, { onWarning });
    const settings = JSON.parse(JSON.stringify({ ...this.config, ...this.algorithmConfig })) as JsonObject;
    await writeJson(join(outputDir, "config.json"), settings);
    const resumeFromStep = isResumed ? this.step : undefined;
    const tracker = openRunTrackers(outputDir, { tensorboard, trackers, onWarning, resumeFromStep });
    await tracker.logConfig(settings);
    return tracker;
  }

  private warn(message: string): void {
    const { onWarning = (text: string) => void process.stderr.write(`${text}\n`) } = this.options;
    onWarning(message);
  }
}

function computeCompletionMetrics(trajectories: readonly Trajectory[]): Metrics {
  const turns = trajectories.map(({ turns: [turn] }) => turn);
  const lengths = turns.map(({ tokens }) => tokens.length);
  const clipped = turns.filter(({ finishReason }) => finishReason === "length").length;
  return {
    "completions/mean_length": lengths.reduce((sum, length) => sum + length, 0) / lengths.length,
    "completions/min_length": Math.min(...lengths),
    "completions/max_length": Math.max(...lengths),
    "completions/clipped_ratio": clipped / turns.length,
  };
}

function toCompletionRow({ row, completion, reward }: CompletionSample) {
  const { prompt } = row;
  return { prompt: typeof prompt === "string" ? prompt : JSON.stringify(prompt), completion, reward };
}
