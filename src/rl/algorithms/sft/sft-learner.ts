import { LlamaGymError } from "../../../core/errors.js";
import type { LanguageModel } from "../../../generation/index.js";
import type { FrozenStates, PackingOptions, TokenBatch } from "../../../models/graphs/index.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { float32 } from "../../../engine/tensor/index.js";
import { countLossTokens, type TokenExample } from "../../data/sft-example.js";
import {
  ExampleLearner,
  createFrozenStates,
  type ExampleEvaluator,
  type StepMetrics,
} from "../shared/example-learner.js";
import { LossGraphs, packItems } from "../shared/sequence-batches.js";
import type { Metrics } from "../learner.js";
import { crossEntropyLoss } from "./loss.js";
import { resolveSftConfig, type SftConfig, type SftOptions } from "./settings.js";

/** Loss and accuracy of an update. */
export interface SftLossMetrics {
  /** Mean cross-entropy of the loss tokens in nats, before the update. */
  readonly loss: number;
  /**
   * Fraction of the loss tokens that are the argmax of their distribution; absent where a service
   * does not return it.
   */
  readonly mean_token_accuracy?: number;
}

/** Metrics of an update. */
export interface SftMetrics extends StepMetrics, SftLossMetrics {}

/** Metrics of an evaluation. */
export interface SftEvaluation {
  readonly eval_loss: number;
  /** Absent where a service does not return it. */
  readonly eval_mean_token_accuracy?: number;
}

/** Optimizes the likelihood of the completions in examples, one batch at a time. */
export class SftLearner
  extends ExampleLearner<TokenExample, SftLossMetrics>
  implements ExampleEvaluator<TokenExample, SftEvaluation>
{
  private readonly graphs: LossGraphs;

  private constructor(
    model: LanguageModel,
    config: SftConfig,
    totalSteps: number | undefined,
    frozenStates: FrozenStates | undefined,
  ) {
    super(model, config, totalSteps, frozenStates);
    this.graphs = new LossGraphs(model.policy, crossEntropyLoss, frozenStates);
  }

  /**
   * `frozenStates` may be shared with other learners of the model; by default the learner has some
   * for itself.
   * @throws INVALID_STATE for a model without trainable parameters, INVALID_ARGUMENT for invalid
   * settings.
   */
  static async create(
    model: LanguageModel,
    options: SftOptions = {},
    {
      totalSteps = options.maxSteps,
      frozenStates = createFrozenStates(model),
    }: { readonly totalSteps?: number | undefined; readonly frozenStates?: FrozenStates | undefined } = {},
  ): Promise<SftLearner> {
    const config = resolveSftConfig(options);
    await frozenStates?.open();
    return new SftLearner(model, config, totalSteps, frozenStates);
  }

  /** Computes loss and accuracy on examples. */
  async evaluate(examples: readonly TokenExample[]): Promise<SftEvaluation> {
    let sum = 0;
    let correct = 0;
    let count = 0;
    for (const microBatch of packExamples(examples, this.packingOptions)) {
      const { logProbs, maxLogProbs } = await this.graphs.score(microBatch);
      logProbs.forEach((logProb, i) => {
        sum -= logProb;
        if (maxLogProbs !== undefined && logProb >= maxLogProbs[i]) correct++;
      });
      count += logProbs.length;
    }
    const accuracy = this.model.policy.hasDistributions ? { eval_mean_token_accuracy: correct / count } : {};
    return { eval_loss: sum / count, ...accuracy };
  }

  countTokens({ tokens }: TokenExample): number {
    return tokens.length;
  }

  override async release(): Promise<void> {
    await this.graphs.release();
    await super.release();
  }

  protected async computeGradients(examples: readonly TokenExample[], random: RandomStream): Promise<SftLossMetrics> {
    const lossTokens = examples.reduce((sum, example) => sum + countLossTokens(example), 0);
    if (lossTokens === 0) throw new LlamaGymError("INVALID_ARGUMENT", "These examples have no loss tokens.");
    let loss = 0;
    let correct = 0;
    let accumulate = false;
    for (const microBatch of packExamples(examples, this.packingOptions)) {
      const weights = float32(microBatch.selected.map(() => 1 / lossTokens));
      const graph = await this.graphs.training(microBatch);
      const outputs = await graph.run(microBatch, { weights }, { accumulate, random });
      loss += outputs.loss.data[0];
      correct += outputs.correct.data[0];
      accumulate = true;
    }
    return { loss, ...(this.model.policy.hasDistributions ? { mean_token_accuracy: correct / lossTokens } : {}) };
  }
}

/**
 * Packs examples into batches of one forward and backward pass, in which the loss tokens are
 * selected.
 */
export function packExamples(examples: readonly TokenExample[], options: PackingOptions): readonly TokenBatch[] {
  const trained = examples.filter((example) => countLossTokens(example) > 0);
  return packItems(
    trained.map((example) => [example]),
    options,
  ).map(({ tokens }) => tokens);
}

/** Converts the metrics of an SFT update to the names in a run's log. */
export function toSftMetrics(stats: SftMetrics): Metrics {
  return {
    "sft/loss": stats.loss,
    ...(stats.mean_token_accuracy === undefined ? {} : { "sft/mean_token_accuracy": stats.mean_token_accuracy }),
    "sft/grad_norm": stats.grad_norm,
    "sft/learning_rate": stats.learning_rate,
    "sft/num_tokens": stats.num_tokens,
  };
}
