import {
  OPTIMIZER_DEFAULTS,
  type OptimizerState,
  type OptimizerStepOptions,
  type OptimizerStepResult,
} from "../engine/optim/index.js";
import { invalidArgument } from "../core/errors.js";
import type { PolicyOptimizer, PolicyOptimizerOptions } from "../generation/index.js";
import { findGradNorm } from "./probe-service.js";
import type { AdamStep } from "./client/remote-model.js";

/**
 * AdamW at a service, which keeps the moments; its parameters travel with each step. A critic in
 * this process has an optimizer here, which takes the same steps.
 */
export class RemoteOptimizer implements PolicyOptimizer {
  private updates = 0;
  private readonly options;

  constructor(
    options: PolicyOptimizerOptions,
    private readonly service: {
      /** Takes a step with the accumulated gradient and returns the metrics of the service. */
      step(adam: AdamStep): Promise<Readonly<Record<string, number>>>;
      /** Drops the moments before the next step. */
      resetOptimizer(): void;
    },
    private readonly critic?: PolicyOptimizer,
  ) {
    this.options = { ...OPTIMIZER_DEFAULTS.adamw, ...options };
  }

  get step(): number {
    return this.updates;
  }

  get learningRate(): number {
    return this.options.learningRate;
  }

  async update({ learningRateFactor = 1 }: OptimizerStepOptions = {}): Promise<OptimizerStepResult> {
    const { beta1, beta2, epsilon, weightDecay, maxGradNorm } = this.options;
    const learningRate = this.learningRate * learningRateFactor;
    const clipNorm = Number.isFinite(maxGradNorm) ? maxGradNorm : 0;
    const metrics = await this.service.step({
      learningRate,
      beta1,
      beta2,
      epsilon,
      weightDecay,
      maxGradNorm: clipNorm,
    });
    await this.critic?.update({ learningRateFactor });
    this.updates++;
    return { gradNorm: findGradNorm(metrics) ?? NaN, learningRate, skipped: false };
  }

  /**
   * Returns the number of updates, and the critic's moments; those of the policy are saved with the
   * model.
   */
  async getState(): Promise<OptimizerState> {
    const critic = await this.critic?.getState();
    return critic ?? { kind: "adamw", step: this.updates, moments: [] };
  }

  async setState(state: OptimizerState): Promise<void> {
    const { step, moments } = state;
    if (this.critic !== undefined) await this.critic.setState(state);
    else if (moments.length > 0)
      throw invalidArgument(
        "The saved optimizer belongs to a model that was trained in this process, not on a service.",
      );
    this.updates = step;
  }

  /** The moments of this optimizer, such as a warm start's, are none of the next one's. */
  release(): void {
    this.critic?.release();
    if (this.updates > 0) this.service.resetOptimizer();
  }
}
