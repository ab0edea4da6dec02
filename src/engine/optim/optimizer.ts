import { invalidArgument } from "../../core/errors.js";
import { subview, type BufferView } from "../runtime/buffer-view.js";
import type { Runtime } from "../runtime/runtime.js";
import { warmupScheduleFactor, type ScheduleOptions } from "./schedule.js";

/** Parameters and their gradients, each one flat vector in the runtime's memory. */
export interface TrainableParameters {
  readonly runtime: Runtime;
  /** [count] */
  readonly values: BufferView;
  /** [count] */
  readonly gradients: BufferView;
  readonly count: number;
}

/** Consecutive parameters with their own learning rate, as PyTorch's parameter groups. */
export interface ParameterGroup {
  readonly offset: number;
  readonly count: number;
  /** Factor of the optimizer's learning rate. */
  readonly learningRateFactor: number;
  /** Whether weight decay applies. Default true. */
  readonly isDecayed?: boolean;
}

interface CommonOptions {
  /** Groups that partition the parameters; by default all are one. */
  readonly groups?: readonly ParameterGroup[];
  readonly learningRate?: number;
  readonly weightDecay?: number;
  /** Gradients above this global norm are scaled down to it; Infinity disables clipping. */
  readonly maxGradNorm?: number;
  readonly schedule?: ScheduleOptions;
}

/** Options of AdamW (Loshchilov and Hutter 2019). */
export interface AdamWOptions extends CommonOptions {
  readonly kind?: "adamw";
  readonly beta1?: number;
  readonly beta2?: number;
  readonly epsilon?: number;
}

/** Options of SGD with momentum. */
export interface SgdOptions extends CommonOptions {
  readonly kind: "sgd";
  readonly momentum?: number;
}

/** Options of an optimizer: AdamW or SGD, clipping and schedule. */
export type OptimizerOptions = AdamWOptions | SgdOptions;

/** PyTorch's defaults, except no weight decay (usual for adapters) and clipping at norm 1. */
export const OPTIMIZER_DEFAULTS = {
  adamw: { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 },
  sgd: { learningRate: 1e-2, momentum: 0, weightDecay: 0, maxGradNorm: 1 },
} as const;

/**
 * Maximum norm of a gradient after clipping: AdamW's moments of its square stay finite in float32.
 */
const MAX_UPDATE_NORM = 1e18;

/** Options of one optimizer step. */
export interface OptimizerStepOptions {
  /** Factor applied to the gradients first: 1 / n after accumulating n micro-batches. */
  readonly gradientScale?: number;
  /** Factor applied to the learning rate, for schedules that do not count optimizer steps. */
  readonly learningRateFactor?: number;
  /** Values of this step in place of the optimizer's, for AdamW whose caller has the schedule. */
  readonly adamW?: StepHyperparameters;
}

/** What AdamW's options may be for one step. */
export type StepHyperparameters = Pick<
  AdamWOptions,
  "learningRate" | "beta1" | "beta2" | "epsilon" | "weightDecay" | "maxGradNorm"
>;

/** Outcome of an optimizer step. */
export interface OptimizerStepResult {
  /** Global gradient norm before clipping. */
  readonly gradNorm: number;
  readonly learningRate: number;
  /** True when the gradient was not finite or too large and nothing was updated. */
  readonly skipped: boolean;
}

/** State from which a run resumes exactly. */
export interface OptimizerState {
  readonly kind: "adamw" | "sgd";
  /** Number of updates so far. */
  readonly step: number;
  /** Moment estimates, each [count]. */
  readonly moments: readonly Float32Array[];
}

/** Updates parameters in place, with clipping by global norm and a learning-rate schedule. */
export class Optimizer {
  private updates = 0;
  private readonly moments: readonly BufferView[];
  private readonly options;
  private readonly groups: readonly ParameterGroup[];
  private readonly schedule: ScheduleOptions;

  /** @throws INVALID_ARGUMENT when an option is out of range. */
  constructor(
    private readonly parameters: TrainableParameters,
    options: OptimizerOptions = {},
  ) {
    const {
      schedule = { kind: "constant" },
      groups = [{ offset: 0, count: parameters.count, learningRateFactor: 1 }],
      ...rest
    } = options;
    this.groups = groups;
    this.options =
      rest.kind === "sgd"
        ? { ...OPTIMIZER_DEFAULTS.sgd, ...rest }
        : { ...OPTIMIZER_DEFAULTS.adamw, ...rest, kind: "adamw" as const };
    this.schedule = schedule;
    checkOptions(this.options);
    warmupScheduleFactor(schedule, 0);
    const count = this.options.kind === "adamw" ? 2 : this.options.momentum > 0 ? 1 : 0;
    this.moments = Array.from({ length: count }, () => parameters.runtime.allocate("float32", [parameters.count]));
  }

  /** Number of updates so far. */
  get step(): number {
    return this.updates;
  }

  /** Learning rate of the next update. */
  get learningRate(): number {
    return this.options.learningRate * warmupScheduleFactor(this.schedule, this.updates);
  }

  /**
   * Performs one update. A gradient that is not finite, or would overflow the moments, changes
   * nothing and sets `skipped`.
   */
  async update({
    gradientScale = 1,
    learningRateFactor = 1,
    adamW,
  }: OptimizerStepOptions = {}): Promise<OptimizerStepResult> {
    const { runtime, gradients } = this.parameters;
    if (adamW !== undefined) checkOptions({ maxGradNorm: this.options.maxGradNorm, ...adamW });
    const options = { ...this.options, ...adamW };
    const learningRate = (adamW?.learningRate ?? this.learningRate) * learningRateFactor;
    const squaredNorm = (await runtime.kernel({ name: "sumSquares", source: gradients })) as number;
    const gradNorm = Math.sqrt(squaredNorm) * Math.abs(gradientScale);
    const { maxGradNorm } = options;
    const clipFactor = Math.min(1, maxGradNorm / (gradNorm + 1e-6));
    if (!(gradNorm * clipFactor <= MAX_UPDATE_NORM)) return { gradNorm, learningRate, skipped: true };
    for (const group of this.groups)
      await this.updateGroup(group, options, learningRate * group.learningRateFactor, gradientScale * clipFactor);
    this.updates++;
    return { gradNorm, learningRate, skipped: false };
  }

  private async updateGroup(
    { offset, count, isDecayed = true }: ParameterGroup,
    options: typeof this.options,
    learningRate: number,
    gradientScale: number,
  ): Promise<void> {
    const { runtime, values, gradients } = this.parameters;
    const select = (buffer: BufferView) => subview(buffer, offset, [count]);
    const common = { parameters: select(values), gradients: select(gradients), learningRate, gradientScale };
    const moments = this.moments.map(select);
    const weightDecay = isDecayed ? options.weightDecay : 0;
    if (options.kind === "adamw") {
      const [firstMoment, secondMoment] = moments;
      const { beta1, beta2, epsilon } = options;
      const step = this.updates + 1;
      await runtime.kernel({
        name: "adamw",
        ...common,
        firstMoment,
        secondMoment,
        beta1,
        beta2,
        epsilon,
        weightDecay,
        step,
      });
    } else {
      const { momentum } = options;
      await runtime.kernel({ name: "sgd", ...common, velocity: moments[0], momentum, weightDecay });
    }
  }

  async getState(): Promise<OptimizerState> {
    const moments: Float32Array[] = [];
    for (const view of this.moments) moments.push((await this.parameters.runtime.read(view)).data as Float32Array);
    return { kind: this.options.kind, step: this.updates, moments };
  }

  /**
   * Restores a saved state. @throws INVALID_ARGUMENT when it belongs to another optimizer or other
   * parameters.
   */
  async setState({ kind, step, moments }: OptimizerState): Promise<void> {
    const matches =
      kind === this.options.kind &&
      moments.length === this.moments.length &&
      moments.every(({ length }) => length === this.parameters.count);
    if (!matches)
      throw invalidArgument(
        `The saved optimizer state (${kind}, ${moments.length} moments of ${moments[0]?.length ?? 0}) does not fit this optimizer ` +
          `(${this.options.kind}, ${this.moments.length} of ${this.parameters.count}).`,
      );
    for (const [i, moment] of moments.entries()) await this.parameters.runtime.write(this.moments[i], moment);
    this.updates = step;
  }

  release(): void {
    for (const view of this.moments) this.parameters.runtime.free(view);
  }
}

const BELOW_ONE = ["beta1", "beta2", "momentum"];

function checkOptions({ maxGradNorm, ...others }: Readonly<Record<string, unknown>>): void {
  if (!(Number(maxGradNorm) > 0)) throw invalidArgument(`\`maxGradNorm\` must be > 0, got ${String(maxGradNorm)}.`);
  for (const [name, value] of Object.entries(others)) {
    if (name === "kind") continue;
    const limit = BELOW_ONE.includes(name) ? 1 : Infinity;
    if (typeof value !== "number" || !(value >= 0 && value < limit))
      throw invalidArgument(`\`${name}\` must be >= 0 and < ${limit}, got ${String(value)}.`);
  }
}
