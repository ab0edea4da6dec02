import { getOrCreatePromise } from "../../../core/promise-cache.js";
import { LlamaGymError } from "../../../core/errors.js";
import type { LanguageModel, PolicyOptimizer, PolicyScorer, PolicyTrainer } from "../../../generation/index.js";
import type { TokenBatch } from "../../../models/graphs/index.js";
import { warmupScheduleFactor, type OptimizerState } from "../../../engine/optim/index.js";
import { stream } from "../../../core/random/streams.js";
import { float32 } from "../../../engine/tensor/index.js";
import { resolveSftConfig, type SftConfig, type SftOptions } from "./settings.js";
import { checkSavedState } from "../check-saved-state.js";
import { countLossTokens, type TokenExample } from "../../data/sft-example.js";
import { crossEntropyLoss } from "./loss.js";
import { packExamples } from "./micro-batches.js";
import { SkippedSteps } from "../update/skipped-steps.js";

/** Metrics of an update. */
export interface SftMetrics {
  /** Number of updates, including this one. */
  readonly step: number;
  /** Number of epochs so far; absent for `update()`. */
  readonly epoch?: number;
  /** Mean cross-entropy of the loss tokens in nats, before the update. */
  readonly loss: number;
  /** Fraction of the loss tokens that are the argmax of their distribution; absent where a service does not return it. */
  readonly mean_token_accuracy?: number;
  /** Norm of the gradient before clipping. */
  readonly grad_norm: number;
  readonly learning_rate: number;
  /** Number of tokens of all examples so far, including prompts. */
  readonly num_tokens: number;
  readonly tokens_per_second: number;
}

/** Metrics of an evaluation. */
export interface SftEvaluation {
  readonly eval_loss: number;
  /** Absent where a service does not return it. */
  readonly eval_mean_token_accuracy?: number;
}

/** State of a resumable run in addition to the trained parameters. */
export interface SftState {
  readonly step: number;
  readonly numTokens: number;
  readonly optimizer: OptimizerState;
}

/** Optimizes the likelihood of the completions in examples, one batch at a time. */
export class SftLearner {
  private readonly graphs = new Map<boolean, Promise<PolicyTrainer>>();
  private readonly scorers = new Map<boolean, Promise<PolicyScorer>>();
  private updates = 0;
  private numTokens = 0;
  private readonly skippedSteps = new SkippedSteps();

  private constructor(
    readonly model: LanguageModel,
    private readonly config: SftConfig,
    /** Updates over which the learning rate decays; without it, the rate is constant. */
    readonly totalSteps: number | undefined,
    private readonly optimizer: PolicyOptimizer,
  ) {}

  /** @throws INVALID_STATE for a model without trainable parameters, INVALID_ARGUMENT for invalid settings. */
  static async create(
    model: LanguageModel,
    options: SftOptions = {},
    totalSteps: number | undefined = options.maxSteps,
  ): Promise<SftLearner> {
    const config = resolveSftConfig(options);
    const { learningRate, weightDecay, beta1, beta2, maxGradNorm } = config;
    const optimizer = model.policy.createOptimizer({ learningRate, weightDecay, beta1, beta2, maxGradNorm });
    return new SftLearner(model, config, totalSteps, optimizer);
  }

  /** Updates made so far, including those skipped because of a non-finite gradient. */
  get step(): number {
    return this.updates;
  }

  /** Makes one update. @throws INVALID_ARGUMENT for examples without loss tokens, TRAINING_DIVERGED. */
  async update(examples: readonly TokenExample[]): Promise<SftMetrics> {
    const started = performance.now();
    const lossTokens = examples.reduce((sum, example) => sum + countLossTokens(example), 0);
    if (lossTokens === 0) throw new LlamaGymError("INVALID_ARGUMENT", "These examples have no loss tokens.");
    const { seed } = this.config;
    const random = stream(seed, "sftDropout", this.step);
    let loss = 0;
    let correct = 0;
    let accumulate = false;
    for (const microBatch of this.toMicroBatches(examples)) {
      const weights = float32(microBatch.selected.map(() => 1 / lossTokens));
      const graph = await this.graph(hasPrefix(microBatch));
      const outputs = await graph.run(microBatch, { weights }, { accumulate, random });
      loss += outputs.loss.data[0];
      correct += outputs.correct.data[0];
      accumulate = true;
    }
    const { gradNorm, learningRate, skipped } = await this.optimizer.update({
      learningRateFactor: this.learningRateFactor(),
    });
    this.model.policy.markParametersChanged();
    this.updates++;
    this.skippedSteps.record(skipped);
    const tokens = examples.reduce((sum, example) => sum + example.tokens.length, 0);
    this.numTokens += tokens;
    return {
      step: this.step,
      loss,
      ...(this.model.policy.hasDistributions ? { mean_token_accuracy: correct / lossTokens } : {}),
      grad_norm: gradNorm,
      learning_rate: learningRate,
      num_tokens: this.numTokens,
      tokens_per_second: tokens / ((performance.now() - started) / 1000),
    };
  }

  /** Computes loss and accuracy on examples. */
  async evaluate(examples: readonly TokenExample[]): Promise<SftEvaluation> {
    let sum = 0;
    let correct = 0;
    let count = 0;
    for (const microBatch of this.toMicroBatches(examples)) {
      const { logProbs, maxLogProbs } = await (await this.scorer(hasPrefix(microBatch))).run(microBatch);
      logProbs.forEach((logProb, i) => {
        sum -= logProb;
        if (maxLogProbs !== undefined && logProb >= maxLogProbs[i]) correct++;
      });
      count += logProbs.length;
    }
    const accuracy = this.model.policy.hasDistributions ? { eval_mean_token_accuracy: correct / count } : {};
    return { eval_loss: sum / count, ...accuracy };
  }

  async getState(): Promise<SftState> {
    return { step: this.updates, numTokens: this.numTokens, optimizer: await this.optimizer.getState() };
  }

  /** Restores a state; the trained parameters are restored with the model. @throws INVALID_ARGUMENT */
  async setState({ step, numTokens, optimizer }: SftState): Promise<void> {
    checkSavedState({ step, numTokens }, { step: 0, numTokens: 0 }, "The state of the fine-tuning");
    await this.optimizer.setState(optimizer);
    this.updates = step;
    this.numTokens = numTokens;
  }

  async release(): Promise<void> {
    for (const graph of [...this.graphs.values(), ...this.scorers.values()]) await (await graph).release();
    this.optimizer.release();
  }

  /** Returns the next update's factor of the learning rate, which is constant if the number of updates is unknown. */
  private learningRateFactor(): number {
    const { totalSteps } = this;
    const { warmupSteps, lrSchedulerType } = this.config;
    const kind = totalSteps === undefined ? "constant" : lrSchedulerType;
    return warmupScheduleFactor({ kind, warmupSteps, totalSteps }, this.step);
  }

  private toMicroBatches(examples: readonly TokenExample[]): readonly TokenBatch[] {
    const { config } = this.model.policy;
    const { sharePrefixes, microBatchTokens = this.model.policy.microBatchTokens } = this.config;
    return packExamples(examples, { sharePrefixes, microBatchTokens, config });
  }

  /** Returns the graph for micro-batches with or without prefixes; the latter is shorter. */
  private async graph(withPrefix: boolean): Promise<PolicyTrainer> {
    return getOrCreatePromise(this.graphs, withPrefix, async () =>
      this.model.policy.createTrainer(crossEntropyLoss, { withPrefix }),
    );
  }

  private async scorer(withPrefix: boolean): Promise<PolicyScorer> {
    return getOrCreatePromise(this.scorers, withPrefix, async () =>
      this.model.policy.createScorer({ withPrefix, withMaxLogProbs: true }),
    );
  }
}

function hasPrefix({ groups }: TokenBatch): boolean {
  return groups.some(({ prefix }) => prefix.length > 0);
}
