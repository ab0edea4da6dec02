import { LlamaGymError } from "../../core/errors.js";
import type { BufferView } from "../runtime/buffer-view.js";
import type { Runtime } from "../runtime/runtime.js";
import { warmupScheduleFactor, type ScheduleOptions } from "./learning-rate-schedule.js";

/** What an optimiser updates: values and their gradients, each one flat vector where graphs run. */
export interface TrainableParameters {
  readonly runtime: Runtime;
  /** [count] */
  readonly values: BufferView;
  /** [count] */
  readonly gradients: BufferView;
  readonly count: number;
}

interface CommonOptions {
  readonly learningRate?: number;
  readonly weightDecay?: number;
  /** Gradients are scaled down to this global norm where theirs is larger; Infinity leaves them. */
  readonly maxGradNorm?: number;
  readonly schedule?: ScheduleOptions;
}

export interface AdamWOptions extends CommonOptions {
  readonly kind?: "adamw";
  readonly beta1?: number;
  readonly beta2?: number;
  readonly epsilon?: number;
}

export interface SgdOptions extends CommonOptions {
  readonly kind: "sgd";
  readonly momentum?: number;
}

export type OptimizerOptions = AdamWOptions | SgdOptions;

/** PyTorch's values, except that no weight decay is the habit with adapters and 1.0 the usual norm to clip at. */
const DEFAULTS = {
  adamw: { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 },
  sgd: { learningRate: 1e-2, momentum: 0, weightDecay: 0, maxGradNorm: 1 },
} as const;

export interface OptimizerStepOptions {
  /** Multiplies the gradients first: 1 / n where n batches were accumulated as sums of means. */
  readonly gradientScale?: number;
  /** Multiplies the learning rate, for schedules that do not count optimiser steps. */
  readonly learningRateFactor?: number;
}

export interface OptimizerStepResult {
  /** Global norm of the gradient before clipping. */
  readonly gradNorm: number;
  readonly learningRate: number;
  /** True when the gradient was not finite and nothing was changed. */
  readonly skipped: boolean;
}

/** Everything that a resumed run needs to go on exactly as if it had not stopped. */
export interface OptimizerState {
  readonly kind: "adamw" | "sgd";
  /** Updates made so far. */
  readonly step: number;
  /** Running averages, in the order in which the optimiser keeps them; each [count]. */
  readonly moments: readonly Float32Array[];
}

/** Updates parameters in place from their gradients, with clipping by global norm and a learning-rate schedule. */
export class Optimizer {
  private updates = 0;
  private readonly moments: readonly BufferView[];
  private readonly options;
  private readonly schedule: ScheduleOptions;

  /** Throws INVALID_ARGUMENT for values out of range. */
  constructor(
    private readonly parameters: TrainableParameters,
    options: OptimizerOptions = {},
  ) {
    const { schedule = { kind: "constant" }, ...rest } = options;
    this.options =
      rest.kind === "sgd" ? { ...DEFAULTS.sgd, ...rest } : { ...DEFAULTS.adamw, ...rest, kind: "adamw" as const };
    this.schedule = schedule;
    checkOptions(this.options);
    warmupScheduleFactor(schedule, 0);
    const count = this.options.kind === "adamw" ? 2 : this.options.momentum > 0 ? 1 : 0;
    this.moments = Array.from({ length: count }, () => parameters.runtime.allocate("float32", [parameters.count]));
  }

  /** Updates made so far. */
  get step(): number {
    return this.updates;
  }

  /** The learning rate of the next update. */
  get learningRate(): number {
    return this.options.learningRate * warmupScheduleFactor(this.schedule, this.updates);
  }

  /**
   * One update. A gradient that is not finite changes nothing and is told in the result.
   */
  async update({ gradientScale = 1, learningRateFactor = 1 }: OptimizerStepOptions = {}): Promise<OptimizerStepResult> {
    const { runtime, values, gradients } = this.parameters;
    const learningRate = this.learningRate * learningRateFactor;
    const squaredNorm = (await runtime.kernel({ name: "sumSquares", source: gradients })) as number;
    const gradNorm = Math.sqrt(squaredNorm) * Math.abs(gradientScale);
    if (!Number.isFinite(gradNorm)) return { gradNorm, learningRate, skipped: true };
    const { maxGradNorm } = this.options;
    const clipFactor = Math.min(1, maxGradNorm / (gradNorm + 1e-6));
    const common = { parameters: values, gradients, learningRate, gradientScale: gradientScale * clipFactor };
    if (this.options.kind === "adamw") {
      const [firstMoment, secondMoment] = this.moments;
      const { beta1, beta2, epsilon, weightDecay } = this.options;
      await runtime.kernel({
        name: "adamw",
        ...common,
        firstMoment,
        secondMoment,
        beta1,
        beta2,
        epsilon,
        weightDecay,
        step: this.updates + 1,
      });
    } else {
      const { momentum, weightDecay } = this.options;
      await runtime.kernel({ name: "sgd", ...common, velocity: this.moments[0], momentum, weightDecay });
    }
    this.updates++;
    return { gradNorm, learningRate, skipped: false };
  }

  async getState(): Promise<OptimizerState> {
    const moments: Float32Array[] = [];
    for (const view of this.moments) moments.push((await this.parameters.runtime.read(view)).data as Float32Array);
    return { kind: this.options.kind, step: this.updates, moments };
  }

  /** Goes on from a saved state; throws INVALID_ARGUMENT when it belongs to another optimiser or other parameters. */
  async setState({ kind, step, moments }: OptimizerState): Promise<void> {
    const matches =
      kind === this.options.kind &&
      moments.length === this.moments.length &&
      moments.every(({ length }) => length === this.parameters.count);
    if (!matches) {
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `The saved optimiser state (${kind}, ${moments.length} moments of ${moments[0]?.length ?? 0}) does not fit this optimiser ` +
          `(${this.options.kind}, ${this.moments.length} of ${this.parameters.count}).`,
      );
    }
    for (const [i, moment] of moments.entries()) await this.parameters.runtime.write(this.moments[i], moment);
    this.updates = step;
  }

  release(): void {
    for (const view of this.moments) this.parameters.runtime.free(view);
  }
}

function checkOptions(options: Readonly<Record<string, unknown>>): void {
  const nonNegative = ["learningRate", "weightDecay", "epsilon"];
  const belowOne = ["beta1", "beta2", "momentum"];
  for (const [name, value] of Object.entries(options)) {
    if (name === "kind") continue;
    const isValid =
      typeof value === "number" &&
      !Number.isNaN(value) &&
      (belowOne.includes(name)
        ? value >= 0 && value < 1
        : nonNegative.includes(name)
          ? value >= 0 && value < Infinity
          : value > 0);
    if (!isValid) throw new LlamaGymError("INVALID_ARGUMENT", `The optimiser's ${name} cannot be ${String(value)}.`);
  }
}
