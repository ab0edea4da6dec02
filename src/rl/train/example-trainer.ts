import { checkOptions, resolveSettings, selectSettings, type OptionNames, type Settings } from "../../core/settings.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { printWarning } from "../../core/terminal-text.js";
import type { LanguageModel } from "../../generation/index.js";
import { withFolderLock } from "../../core/files/folder-lock.js";
import type { LearnerState, Metrics } from "../algorithms/learner.js";
import type {
  ExampleEvaluator,
  ExampleLearner,
  ExampleState,
  StepMetrics,
} from "../algorithms/shared/example-learner.js";
import { checkNoCheckpoints, restoreLatestCheckpoint } from "./checkpoints.js";
import { runTrainLoop, type TrainLoopOptions, type TrainResult } from "./train-loop.js";
import { checkEarlyStopping, earlyStoppingSettings, evaluationSettings } from "./trainer-settings.js";
import type { ResumedRun, RolloutCounts, TrainerState, TrainTask } from "./train-task.js";

/** Callbacks of a trainer on examples. */
export interface ExampleTrainOptions<StepMetricsType, Evaluation>
  extends
    Pick<TrainLoopOptions, "checkpointDir" | "lock" | "saveSteps" | "evalSteps" | "tracker" | "onUpdate" | "signal">,
    Partial<Settings<typeof earlyStoppingSettings>> {
  /** Called after each update, and awaited. */
  readonly onStep?: (metrics: StepMetricsType) => void | Promise<void>;
  readonly onEvaluation?: (evaluation: Evaluation, step: number) => void;
}

/** When it is evaluated, and when that ends training. */
const evaluationSteps = { evalSteps: evaluationSettings.evalSteps, ...earlyStoppingSettings };

const trainOptionNames: OptionNames<ExampleTrainOptions<unknown, unknown>> = {
  checkpointDir: String,
  lock: true,
  saveSteps: true,
  ...evaluationSteps,
  tracker: true,
  onUpdate: Function,
  signal: AbortSignal,
  onStep: Function,
  onEvaluation: Function,
};

/** The examples of one update. */
export interface ExampleBatch<Example> {
  readonly examples: readonly Example[];
  /** Epochs completed after this batch; undefined for generated examples. */
  readonly epoch: number | undefined;
}

type AnyLoss = { readonly loss: number };

/** What a trainer on examples consists of. */
interface ExampleTrainerParts<Example, Loss extends AnyLoss, Evaluation> {
  /** Name of the trainer's class, for errors. */
  readonly name: string;
  /** Group of the metrics in a log, such as "sft". */
  readonly metricPrefix: string;
  readonly learner: ExampleLearner<Example, Loss> & ExampleEvaluator<Example, Evaluation>;
  /**
   * Returns the examples of an update, counted from 0; undefined where there is nothing to train
   * on.
   */
  readonly getBatch: ((step: number) => ExampleBatch<Example>) | undefined;
  readonly evalExamples: readonly Example[];
}

/**
 * Trains on lists of examples: the loop, checkpoints and evaluation that supervised and preference
 * training share.
 */
export abstract class ExampleTrainer<Example, Loss extends AnyLoss, Evaluation extends object> {
  private resumed: ResumedRun | undefined;
  private readonly task: ExampleTask<Example, Loss, Evaluation> | undefined;

  protected constructor(private readonly parts: ExampleTrainerParts<Example, Loss, Evaluation>) {
    this.task = parts.getBatch && new ExampleTask(parts, parts.getBatch);
  }

  get model(): LanguageModel {
    return this.parts.learner.model;
  }

  /** Updates made so far, including those skipped because of a non-finite gradient. */
  get step(): number {
    return this.parts.learner.step;
  }

  /** Number of updates of the run; undefined without training examples and `maxSteps`. */
  get totalSteps(): number | undefined {
    return this.parts.learner.totalSteps;
  }

  /**
   * Restores the newest undamaged checkpoint in a folder, if there is one, and returns the number
   * of updates made so far. `onWarning` receives the damaged ones.
   * @throws FILE_CORRUPT, WEIGHTS_MISMATCH, RUN_INCOMPATIBLE
   */
  async resume(checkpointDir: string, onWarning: (message: string) => void = printWarning): Promise<number> {
    this.resumed = await restoreLatestCheckpoint(checkpointDir, () => this.requireTask(), onWarning);
    return this.step;
  }

  /**
   * Makes the remaining updates. @throws INVALID_STATE without training examples, FOLDER_IN_USE,
   * TRAINING_DIVERGED.
   */
  async train(options: ExampleTrainOptions<StepMetrics & Loss, Evaluation> = {}): Promise<TrainResult> {
    checkOptions("train", options, trainOptionNames);
    const { lock, checkpointDir } = options;
    if (lock !== undefined) return this.trainLocked(options);
    return withFolderLock(checkpointDir, async (taken) => this.trainLocked({ ...options, lock: taken }));
  }

  async release(): Promise<void> {
    await this.parts.learner.release();
  }

  private async trainLocked({
    onStep,
    onUpdate,
    onEvaluation,
    ...options
  }: ExampleTrainOptions<StepMetrics & Loss, Evaluation>): Promise<TrainResult> {
    const task = this.requireTask();
    const { resumed } = this;
    const settings = resolveSettings("train", evaluationSteps, selectSettings(evaluationSteps, options));
    const { evalSteps, earlyStoppingPatience } = settings;
    checkEarlyStopping(settings);
    const needing = evalSteps === undefined ? earlyStoppingPatience && "earlyStoppingPatience" : "evalSteps";
    if (needing !== undefined && this.parts.evalExamples.length === 0)
      throw invalidArgument(
        `\`${needing}\` needs examples to evaluate: give ${this.parts.name}.create \`evaluation\`.`,
      );
    if (resumed === undefined)
      await checkNoCheckpoints(options.checkpointDir, "Call resume() before train(), or choose another folder.");
    const result = await runTrainLoop(task, {
      ...options,
      stopping: earlyStoppingPatience === undefined ? undefined : { ...settings, metric: task.lossName, isLoss: true },
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

  private requireTask(): ExampleTask<Example, Loss, Evaluation> {
    if (this.task !== undefined) return this.task;
    throw new LlamaGymError("INVALID_STATE", `There is nothing to train on: give ${this.parts.name}.create \`train\`.`);
  }
}

/** What a checkpoint of a learner on examples contains. */
export class CheckpointedLearner<Example, Loss extends AnyLoss> {
  constructor(private readonly learner: ExampleLearner<Example, Loss>) {}

  async getState(): Promise<LearnerState> {
    const { learner } = this;
    const { optimizer, ...state } = await learner.getState();
    return { optimizer, frozenStates: await learner.frozenStates?.getState(), state };
  }

  async saveModel(folder: string): Promise<void> {
    await this.learner.model.savePretrained(folder);
  }

  async setState({ optimizer, frozenStates, state }: LearnerState, folder: string): Promise<void> {
    const { learner } = this;
    await learner.model.loadTrainedValues(folder);
    await learner.setState({ ...(state as Omit<ExampleState, "optimizer">), optimizer });
    if (frozenStates !== undefined) await learner.frozenStates?.setState(frozenStates);
  }
}

class ExampleTask<Example, Loss extends AnyLoss, Evaluation extends object>
  extends CheckpointedLearner<Example, Loss>
  implements TrainTask<ExampleBatch<Example>, ExampleBatch<Example>>
{
  lastMetrics: (StepMetrics & Loss) | undefined;
  lastEvaluation: Evaluation | undefined;

  constructor(
    private readonly parts: ExampleTrainerParts<Example, Loss, Evaluation>,
    private readonly getBatch: (step: number) => ExampleBatch<Example>,
  ) {
    super(parts.learner);
  }

  progress({ updates }: TrainerState): number {
    return updates / this.parts.learner.totalSteps!;
  }

  async collect({ updates }: TrainerState): Promise<ExampleBatch<Example>> {
    return this.getBatch(updates);
  }

  async prepare(batch: ExampleBatch<Example>): Promise<ExampleBatch<Example>> {
    return batch;
  }

  async update({ examples, epoch }: ExampleBatch<Example>): Promise<Metrics> {
    const metrics = await this.parts.learner.update(examples);
    this.lastMetrics = epoch === undefined ? metrics : { ...metrics, epoch };
    const { step: _, ...logged } = this.lastMetrics;
    return { ...this.addPrefix(logged), ...this.parts.learner.model.policy.metrics };
  }

  count({ examples }: ExampleBatch<Example>): RolloutCounts {
    const { learner } = this.parts;
    return { turns: 0, tokens: examples.reduce((sum, item) => sum + learner.countTokens(item), 0), returns: [] };
  }

  describe(): Metrics {
    return {};
  }

  async evaluate(): Promise<Metrics | undefined> {
    const { evalExamples, learner } = this.parts;
    if (evalExamples.length === 0) return undefined;
    this.lastEvaluation = await learner.evaluate(evalExamples);
    return this.addPrefix(this.lastEvaluation);
  }

  isEpochEnd(): boolean {
    return Number.isInteger(this.lastMetrics?.epoch);
  }

  /** The metric of evaluations. */
  get lossName(): string {
    return `${this.parts.metricPrefix}/eval_loss`;
  }

  /** sft/loss, sft/eval_loss, ... */
  private addPrefix(metrics: object): Metrics {
    const { metricPrefix } = this.parts;
    return Object.fromEntries(
      Object.entries(metrics).map(([name, value]) => [`${metricPrefix}/${name}`, value as number]),
    );
  }
}
