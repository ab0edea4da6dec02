import type { OptimizerState, OptimizerStepOptions, OptimizerStepResult } from "../engine/optim/index.js";
import { invalidArgument } from "../core/errors.js";
import type { PolicyOptimizer, PolicyOptimizerOptions } from "../generation/index.js";
import { findGradNorm } from "./probe-service.js";
import type { AdamStep } from "./client/remote-model.js";

/** Defaults of AdamWOptions. */
const DEFAULTS = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 };

/** AdamW at a service, which keeps the moments; its parameters travel with each step. */
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
  ) {
    this.options = { ...DEFAULTS, ...options };
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
    this.updates++;
    return { gradNorm: findGradNorm(metrics) ?? NaN, learningRate, skipped: false };
  }

  /** Returns the number of updates; the moments are saved with the model. */
  async getState(): Promise<OptimizerState> {
    return { kind: "adamw", step: this.updates, moments: [] };
  }

  async setState({ step, moments }: OptimizerState): Promise<void> {
    if (moments.length > 0)
      throw invalidArgument(
        "The saved optimizer belongs to a model that was trained in this process, not on a service.",
      );
    this.updates = step;
  }

  /** The moments of this optimizer, such as a warm start's, are none of the next one's. */
  release(): void {
    if (this.updates > 0) this.service.resetOptimizer();
  }
}
