import type { LanguageModel, PolicyOptimizer } from "../../../generation/index.js";
import { FrozenStates, type PackingOptions } from "../../../models/graphs/index.js";
import { warmupScheduleFactor, type OptimizerState } from "../../../engine/optim/index.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { stream } from "../../../core/random/streams.js";
import { checkSavedState } from "../check-model.js";
import { SkippedSteps } from "../update/skipped-steps.js";
import type { ExampleConfig } from "./example-settings.js";

/** Metrics of an update on examples, whatever its loss. */
export interface StepMetrics {
  /** Number of updates, including this one. */
  readonly step: number;
  /** Number of epochs so far; absent for `update()`. */
  readonly epoch?: number;
  readonly loss: number;
  /** Norm of the gradient before clipping. */
  readonly grad_norm: number;
  readonly learning_rate: number;
  /** Number of tokens of all examples so far, including prompts. */
  readonly num_tokens: number;
  readonly tokens_per_second: number;
}

/**
 * Returns states of a model's frozen layers, which all epochs read and checkpoints contain;
 * undefined without frozen layers, or where a service has the weights.
 */
export function createFrozenStates({ policy }: LanguageModel): FrozenStates | undefined {
  return policy.causalLM && FrozenStates.create(policy.causalLM, { areSaved: true });
}

/**
 * State of a resumable run in addition to the trained parameters and the states of frozen layers.
 */
export interface ExampleState {
  readonly step: number;
  readonly numTokens: number;
  readonly optimizer: OptimizerState;
}

/** Computes loss and metrics on examples without training on them. */
export interface ExampleEvaluator<Example, Evaluation> {
  evaluate(examples: readonly Example[]): Promise<Evaluation>;
}

/**
 * Trains a model on examples, one batch at a time; a subclass computes the gradients of its loss.
 */
export abstract class ExampleLearner<Example, LossMetrics extends { readonly loss: number }> {
  private readonly optimizer: PolicyOptimizer;
  private updates = 0;
  private numTokens = 0;
  private readonly skippedSteps = new SkippedSteps();

  protected constructor(
    readonly model: LanguageModel,
    protected readonly config: ExampleConfig,
    /** Updates over which the learning rate decays; without it, the rate is constant. */
    readonly totalSteps: number | undefined,
    /** The states of frozen layers, open until `release`. */
    readonly frozenStates: FrozenStates | undefined,
  ) {
    const { learningRate, weightDecay, beta1, beta2, maxGradNorm } = config;
    this.optimizer = model.policy.createOptimizer({ learningRate, weightDecay, beta1, beta2, maxGradNorm });
  }

  /** Updates made so far, including those skipped because of a non-finite gradient. */
  get step(): number {
    return this.updates;
  }

  /**
   * Makes one update. @throws INVALID_ARGUMENT for examples without loss tokens, TRAINING_DIVERGED.
   */
  async update(examples: readonly Example[]): Promise<StepMetrics & LossMetrics> {
    const started = performance.now();
    const random = stream(this.config.seed, "sftDropout", this.step);
    const metrics = await this.computeGradients(examples, random);
    const { gradNorm, learningRate, skipped } = await this.optimizer.update({
      learningRateFactor: this.learningRateFactor(),
    });
    this.model.policy.markParametersChanged();
    this.updates++;
    this.skippedSteps.record(skipped);
    const tokens = examples.reduce((sum, example) => sum + this.countTokens(example), 0);
    this.numTokens += tokens;
    return {
      step: this.step,
      ...metrics,
      grad_norm: gradNorm,
      learning_rate: learningRate,
      num_tokens: this.numTokens,
      tokens_per_second: tokens / ((performance.now() - started) / 1000),
    };
  }

  /** Counts the tokens of an example, including its prompt. */
  abstract countTokens(example: Example): number;

  async getState(): Promise<ExampleState> {
    return { step: this.updates, numTokens: this.numTokens, optimizer: await this.optimizer.getState() };
  }

  /**
   * Restores a state; the trained parameters are restored with the model. @throws INVALID_ARGUMENT
   */
  async setState({ step, numTokens, optimizer }: ExampleState): Promise<void> {
    checkSavedState({ step, numTokens }, { step: 0, numTokens: 0 }, "The state of the training");
    await this.optimizer.setState(optimizer);
    this.updates = step;
    this.numTokens = numTokens;
  }

  async release(): Promise<void> {
    this.optimizer.release();
    await this.frozenStates?.release();
  }

  /** Writes the gradients of a batch to the model's gradient buffer. */
  protected abstract computeGradients(examples: readonly Example[], random: RandomStream): Promise<LossMetrics>;

  protected get packingOptions(): PackingOptions {
    const { policy } = this.model;
    const { config } = policy;
    const { sharePrefixes, microBatchTokens = policy.microBatchTokens } = this.config;
    return { sharePrefixes, microBatchTokens, config };
  }

  /**
   * Returns the next update's factor of the learning rate, which is constant if the number of
   * updates is unknown.
   */
  private learningRateFactor(): number {
    const { totalSteps } = this;
    const kind = totalSteps === undefined ? "constant" : this.config.lrSchedulerType;
    return warmupScheduleFactor({ ...this.config, kind, totalSteps }, this.step);
  }
}
