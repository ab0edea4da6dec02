import type { PolicyBackend, PolicyOptimizer, PolicyOptimizerOptions } from "../../../generation/index.js";
import type { OptimizerState } from "../../../engine/optim/index.js";
import { SkippedSteps } from "./skipped-steps.js";
import type { TurnTokens } from "./turn-batch.js";
import {
  TurnGradients,
  type MinibatchOptions,
  type InputsOf,
  type TurnGradientsOptions,
  type TurnStatistics,
} from "./turn-gradients.js";

export interface PolicyUpdaterOptions extends TurnGradientsOptions {
  readonly optimizer: PolicyOptimizerOptions;
}

/** Result of one optimizer step. */
export interface UpdateResult extends TurnStatistics {
  /** Norm before clipping; undefined where `shouldStep` refused the step. */
  readonly gradNorm: number | undefined;
  readonly learningRate: number;
  /** Whether the step was refused by `shouldStep`, or the loss or gradient was not finite. */
  readonly skipped: boolean;
}

/**
 * Makes optimizer steps on turns: packs them, computes the loss and its gradient, and updates the
 * trainable parameters.
 */
export class PolicyUpdater {
  readonly gradients: TurnGradients;
  private readonly optimizer: PolicyOptimizer;
  private readonly skippedSteps = new SkippedSteps();

  constructor(
    private readonly policy: PolicyBackend,
    options: PolicyUpdaterOptions,
  ) {
    this.gradients = new TurnGradients(policy, options);
    this.optimizer = policy.createOptimizer(options.optimizer);
  }

  /** Number of optimizer steps so far. */
  get steps(): number {
    return this.optimizer.step;
  }

  /**
   * Makes one optimizer step on a minibatch. `shouldStep` may refuse the step for its statistics.
   * @throws TRAINING_DIVERGED after several consecutive steps whose gradient was not finite.
   */
  async step(
    turns: readonly TurnTokens[],
    inputs: InputsOf,
    {
      learningRateFactor,
      shouldStep = () => true,
      trainableFilter,
      ...options
    }: MinibatchOptions & {
      readonly learningRateFactor?: number;
      readonly shouldStep?: (statistics: Readonly<Record<string, number>>) => boolean;
      /** Selects the parameters to update; all by default. */
      readonly trainableFilter?: (parameter: string) => boolean;
    },
  ): Promise<UpdateResult> {
    const { statistics, perTurn } = await this.gradients.compute(turns, inputs, options);
    const learningRate = this.optimizer.learningRate * (learningRateFactor ?? 1);
    if (!shouldStep(statistics)) return { statistics, perTurn, gradNorm: undefined, learningRate, skipped: true };
    if (trainableFilter !== undefined) await this.policy.zeroGradients((name) => !trainableFilter(name));
    const result = Number.isFinite(statistics.loss)
      ? await this.optimizer.update({ learningRateFactor })
      : { gradNorm: Number.NaN, learningRate, skipped: true };
    this.skippedSteps.record(result.skipped);
    if (!result.skipped) this.policy.markParametersChanged();
    return { statistics, perTurn, ...result };
  }

  async state(): Promise<OptimizerState> {
    return this.optimizer.getState();
  }

  async restore(state: OptimizerState): Promise<void> {
    await this.optimizer.setState(state);
  }

  async release(): Promise<void> {
    await this.gradients.release();
    this.optimizer.release();
  }
}
