import { invalidArgument } from "../../../core/errors.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { float32 } from "../../../engine/tensor/index.js";
import type { LanguageModel } from "../../../generation/index.js";
import type { FrozenStates } from "../../../models/graphs/index.js";
import { createFrozenStates, ExampleLearner } from "../shared/example-learner.js";
import { decisionIndices, type TurnTokens } from "../update/turn-batch.js";
import { TurnGradients } from "../update/turn-gradients.js";
import { crossEntropyLoss } from "./loss.js";
import { resolveSftConfig, type SftConfig, type SftOptions } from "./settings.js";
import type { SftLossMetrics } from "./sft-learner.js";

export interface TurnSftLearnerOptions extends Pick<SftOptions, "learningRate" | "maxSteps" | "seed"> {
  /** Memory of a micro-batch, in tokens. */
  readonly microBatchTokens?: number | undefined;
  /** Temperature that the policy samples with. */
  readonly temperature: number;
  /** States that other learners of the model share; by default the learner has some for itself. */
  readonly frozenStates?: FrozenStates | undefined;
}

/**
 * Maximizes the likelihood that the policy chooses as turns did: among the tokens or actions that
 * were allowed, as the policy samples and as reinforcement learning trains it. Loss and accuracy
 * are means over decisions: a scored action is one, a token without an alternative is none.
 */
export class TurnSftLearner extends ExampleLearner<TurnTokens, SftLossMetrics> {
  private readonly gradients: TurnGradients;

  private constructor(
    model: LanguageModel,
    config: SftConfig,
    private readonly temperature: number,
    frozenStates: FrozenStates | undefined,
  ) {
    super(model, config, config.maxSteps, frozenStates);
    const { policy } = model;
    const { microBatchTokens = policy.microBatchTokens } = config;
    this.gradients = new TurnGradients(policy, {
      loss: crossEntropyLoss,
      entropy: "none",
      microBatchTokens,
      frozenStates,
    });
  }

  /** @throws INVALID_STATE for a model without trainable parameters, INVALID_ARGUMENT. */
  static async create(
    model: LanguageModel,
    { temperature, frozenStates = createFrozenStates(model), ...options }: TurnSftLearnerOptions,
  ): Promise<TurnSftLearner> {
    const config = resolveSftConfig(options);
    await frozenStates?.open();
    return new TurnSftLearner(model, config, temperature, frozenStates);
  }

  countTokens({ prompt, tokens }: TurnTokens): number {
    return prompt.length + tokens.length;
  }

  override async release(): Promise<void> {
    await this.gradients.release();
    await super.release();
  }

  protected async computeGradients(all: readonly TurnTokens[], random: RandomStream): Promise<SftLossMetrics> {
    const turns = all.filter(({ tokens }) => tokens.length > 0);
    if (turns.length === 0) throw invalidArgument("These turns have no completions to train on.");
    const counts = turns.map((turn) => decisionIndices(turn).length);
    const decisions = counts.reduce((sum, count) => sum + count, 0);
    const weights = (turnIndices: readonly number[]) =>
      float32(turnIndices.flatMap((i) => Array.from({ length: counts[i] }, () => 1 / decisions)));
    const { temperature } = this;
    const { statistics } = await this.gradients.compute(turns, (indices) => ({ weights: weights(indices) }), {
      temperature,
      random,
    });
    const { loss, correct } = statistics;
    return { loss, ...(this.model.policy.hasDistributions ? { mean_token_accuracy: correct / decisions } : {}) };
  }
}
