import { printWarning } from "../../core/terminal-text.js";
import { LlamaGymError } from "../../core/errors.js";
import type { LanguageModel } from "../../generation/index.js";
import { withFolderLock } from "../../models/files/index.js";
import type { LearnerState, Metrics } from "../algorithms/learner.js";
import { BatchSchedule } from "../algorithms/sft/batch-schedule.js";
import { resolveSftConfig, type SftConfig, type SftOptions } from "../algorithms/sft/settings.js";
import { SftLearner, type SftEvaluation, type SftMetrics, type SftState } from "../algorithms/sft/sft-learner.js";
import { encodeDataset, type EncodedDataset } from "../data/encode-dataset.js";
import { encodeExample, type SftExample, type TokenExample } from "../data/sft-example.js";
import { checkNoCheckpoints, restoreLatestCheckpoint } from "./checkpoints.js";
import { runTrainLoop, type TrainLoopOptions, type TrainResult } from "./train-loop.js";
import type { ResumedRun, RolloutCounts, TrainerState, TrainTask } from "./train-task.js";

/** Options of `SftTrainer`, named as TRL's. */
export interface SftTrainerOptions extends SftOptions {
  /** Training examples: a list, or a function of the update's index (from 0), which needs `maxSteps`. */
  readonly train?: readonly SftExample[] | ((step: number) => readonly SftExample[]);
  /** Examples for `evaluate`. */
  readonly evaluation?: readonly SftExample[];
}

/** Callbacks of `SftTrainer.train`. */
export interface SftTrainOptions extends Pick<
  TrainLoopOptions,
  "checkpointDir" | "lock" | "saveSteps" | "evalSteps" | "tracker" | "onUpdate" | "signal"
> {
  /** Called after each update, and awaited. */
  readonly onStep?: (metrics: SftMetrics) => void | Promise<void>;
  readonly onEvaluation?: (evaluation: SftEvaluation, step: number) => void;
}

interface SftBatch {
  readonly examples: readonly TokenExample[];
  /** Epochs completed after this batch; undefined for generated examples. */
  readonly epoch: number | undefined;
}

/**
 * Supervised fine-tuning: maximizes the likelihood of the completions in examples. The model needs trainable parameters: an
 * adapter (`getPeftModel`) or all weights.
 */
export class SftTrainer {
  private resumed: ResumedRun | undefined;

  private constructor(
    readonly config: SftConfig,
    /** The encoded training examples; undefined without a list of them. */
    readonly dataset: EncodedDataset | undefined,
    private readonly learner: SftLearner,
    private readonly evalExamples: readonly TokenExample[],
    private readonly task: SftTask | undefined,
  ) {}

  /**
   * @throws INVALID_STATE for a model without trainable parameters; INVALID_ARGUMENT for invalid settings and examples;
   * TEMPLATE_FAILED.
   */
  static async create(
    model: LanguageModel,
    { train, evaluation = [], ...options }: SftTrainerOptions = {},
  ): Promise<SftTrainer> {
    const config = resolveSftConfig(options);
    const { maxPositions, vocabSize } = model.policy.config;
    const maxLength = Math.min(config.maxLength ?? Infinity, maxPositions);
    const encodingOptions = { ...config, maxLength, vocabSize };
    const encode = (examples: readonly SftExample[]) => encodeDataset(examples, () => model.tokenizer, encodingOptions);
    const dataset = train === undefined || typeof train === "function" ? undefined : encode(train);
    const evalExamples = evaluation.length === 0 ? [] : encode(evaluation).examples;
    const schedule = dataset && new BatchSchedule(dataset.examples, config);
    const totalSteps = schedule?.totalSteps ?? config.maxSteps;
    const learner = await SftLearner.create(model, config, totalSteps);
    if (train === undefined) return new SftTrainer(config, dataset, learner, evalExamples, undefined);
    if (totalSteps === undefined)
      throw new LlamaGymError("INVALID_ARGUMENT", "Generated training examples have no epochs: set `maxSteps`.");
    const getBatch =
      typeof train === "function"
        ? (step: number) => ({ examples: encodeExamples(train(step), model, config), epoch: undefined })
        : (step: number) => schedule!.batch(step);
    const task = new SftTask(learner, getBatch, totalSteps, evalExamples);
    return new SftTrainer(config, dataset, learner, evalExamples, task);
  }

  get model(): LanguageModel {
    return this.learner.model;
  }

  /** Updates made so far, including those skipped because of a non-finite gradient. */
  get step(): number {
    return this.learner.step;
  }

  /** Number of updates of the run; undefined without training examples and `maxSteps`. */
  get totalSteps(): number | undefined {
    return this.learner.totalSteps;
  }

  /**
   * Restores the newest undamaged checkpoint in a folder, if there is one, and returns the number of updates made so far.
   * `onWarning` receives the damaged ones.
   * @throws FILE_CORRUPT, WEIGHTS_MISMATCH, RUN_INCOMPATIBLE
   */
  async resume(checkpointDir: string, onWarning: (message: string) => void = printWarning): Promise<number> {
    this.resumed = await restoreLatestCheckpoint(checkpointDir, () => this.requireTask(), onWarning);
    return this.step;
  }

  /** Makes the remaining updates. @throws INVALID_STATE without training examples, FOLDER_IN_USE, TRAINING_DIVERGED. */
  async train(options: SftTrainOptions = {}): Promise<TrainResult> {
    const { lock, checkpointDir } = options;
    if (lock !== undefined) return this.trainLocked(options);
    return withFolderLock(checkpointDir, async (taken) => this.trainLocked({ ...options, lock: taken }));
  }

  private async trainLocked({ onStep, onUpdate, onEvaluation, ...options }: SftTrainOptions): Promise<TrainResult> {
    const task = this.requireTask();
    const { resumed } = this;
    if (resumed === undefined)
      await checkNoCheckpoints(options.checkpointDir, "Call resume() before train(), or choose another folder.");
    const result = await runTrainLoop(task, {
      ...options,
      resumed,
      onUpdate: async (event) => {
        await onStep?.(task.lastMetrics!);
        return onUpdate?.(event);
      },
      onEvaluation: (_metrics, { updates }) => onEvaluation?.(task.lastEvaluation!, updates),
    });
    this.resumed = { state: result.state, folder: result.latestCheckpoint };
    return result;
  }

  /** Makes one update on the given examples. @throws as `create`, and TRAINING_DIVERGED. */
  async update(examples: readonly SftExample[]): Promise<SftMetrics> {
    return this.learner.update(encodeExamples(examples, this.model, this.config));
  }

  /** Computes loss and accuracy on the evaluation examples, or on others. */
  async evaluate(examples?: readonly SftExample[]): Promise<SftEvaluation> {
    const encoded = examples === undefined ? this.evalExamples : encodeExamples(examples, this.model, this.config);
    return this.learner.evaluate(encoded);
  }

  async release(): Promise<void> {
    await this.learner.release();
  }

  private requireTask(): SftTask {
    if (this.task !== undefined) return this.task;
    throw new LlamaGymError("INVALID_STATE", "There is nothing to train on: give SftTrainer.create `train`.");
  }
}

class SftTask implements TrainTask<SftBatch, SftBatch> {
  lastMetrics: SftMetrics | undefined;
  lastEvaluation: SftEvaluation | undefined;

  constructor(
    private readonly learner: SftLearner,
    private readonly getBatch: (step: number) => SftBatch,
    private readonly totalSteps: number,
    private readonly evalExamples: readonly TokenExample[],
  ) {}

  progress({ updates }: TrainerState): number {
    return updates / this.totalSteps;
  }

  async collect({ updates }: TrainerState): Promise<SftBatch> {
    return this.getBatch(updates);
  }

  async prepare(batch: SftBatch): Promise<SftBatch> {
    return batch;
  }

  async update({ examples, epoch }: SftBatch): Promise<Metrics> {
    const metrics = await this.learner.update(examples);
    this.lastMetrics = epoch === undefined ? metrics : { ...metrics, epoch };
    const { step: _, ...logged } = this.lastMetrics;
    return { ...addPrefix(logged), ...this.learner.model.policy.metrics };
  }

  count({ examples }: SftBatch): RolloutCounts {
    return { turns: 0, tokens: examples.reduce((sum, { tokens }) => sum + tokens.length, 0), returns: [] };
  }

  describe(): Metrics {
    return {};
  }

  async evaluate(): Promise<Metrics | undefined> {
    if (this.evalExamples.length === 0) return undefined;
    this.lastEvaluation = await this.learner.evaluate(this.evalExamples);
    return addPrefix(this.lastEvaluation);
  }

  isEpochEnd(): boolean {
    return Number.isInteger(this.lastMetrics?.epoch);
  }

  async getState(): Promise<LearnerState> {
    const { optimizer, ...state } = await this.learner.getState();
    return { optimizer, state };
  }

  async saveModel(folder: string): Promise<void> {
    await this.learner.model.savePretrained(folder);
  }

  async setState({ optimizer, state }: LearnerState, folder: string): Promise<void> {
    await this.learner.model.loadTrainedValues(folder);
    await this.learner.setState({ ...(state as Omit<SftState, "optimizer">), optimizer });
  }
}

function encodeExamples(
  examples: readonly SftExample[],
  model: LanguageModel,
  { assistantOnlyLoss }: SftConfig,
): TokenExample[] {
  const options = { assistantOnlyLoss, vocabSize: model.policy.config.vocabSize };
  return examples.map((example) => encodeExample(example, () => model.tokenizer, options));
}

/** sft/loss, sft/eval_loss, ... */
function addPrefix(metrics: object): Metrics {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`sft/${name}`, value as number]));
}
