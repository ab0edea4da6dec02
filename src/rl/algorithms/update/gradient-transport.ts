import type { BufferView } from "../../../engine/runtime/index.js";
import { tensor } from "../../../engine/tensor/index.js";
import type { CausalLM } from "../../../models/index.js";
import type { GradientJob, GradientResult, MicroBatchOutputs } from "./micro-batch-graphs.js";

/** What the numbers of a gradient job's result must fit. */
export interface GradientLimits {
  /** Names of the outputs, and whether each is a scalar. */
  readonly outputs: ReadonlyMap<string, boolean>;
  /** Lengths that the other outputs may have. */
  readonly lengths: readonly number[];
  /** Number of trained values. */
  readonly parameterCount: number;
}

/** Carries gradient jobs to workers. */
export interface GradientTransport {
  /** Publishes the trained values that the next jobs use. */
  publishStep(values: Float32Array): Promise<void>;
  /** Runs a job on any worker; several may run at once. */
  computeGradients(job: GradientJob, limits: GradientLimits): Promise<GradientResult>;
}

/** A gradient job with the lengths that its outputs may have. */
export interface SizedGradientJob extends Pick<GradientLimits, "lengths"> {
  readonly job: GradientJob;
}

/** Memory of results that arrive before those that are summed first. */
const MAX_PENDING_BYTES = 2 ** 30;

/**
 * Computes the micro-batches of an optimizer step on workers, and sums their gradients in the order
 * of the micro-batches.
 */
export class RemoteGradients {
  private publishedParameters: number | undefined;
  private addend: BufferView | undefined;

  constructor(
    private readonly model: CausalLM,
    private readonly transport: GradientTransport,
    private readonly outputs: GradientLimits["outputs"],
  ) {}

  /**
   * Yields the outputs of the jobs in order, after adding their gradients to the model's gradient
   * buffer.
   */
  async *compute(jobs: Iterable<SizedGradientJob>): AsyncGenerator<MicroBatchOutputs> {
    const { count: parameterCount } = this.model.parameters;
    const maxPending = Math.max(8, Math.floor(MAX_PENDING_BYTES / (4 * parameterCount)));
    await this.publish();
    const pending: Promise<GradientResult>[] = [];
    let index = 0;
    for (const { job, lengths } of jobs) {
      const result = this.transport.computeGradients(job, { outputs: this.outputs, lengths, parameterCount });
      // A failure is thrown where the result is awaited.
      result.catch(() => {});
      pending.push(result);
      if (pending.length >= maxPending) yield this.add(await pending.shift()!, index++);
    }
    for (const result of pending) yield this.add(await result, index++);
  }

  release(): void {
    if (this.addend !== undefined) this.model.runtime.free(this.addend);
  }

  private async publish(): Promise<void> {
    const { runtime, parameters, parametersVersion } = this.model;
    if (this.publishedParameters === parametersVersion) return;
    await this.transport.publishStep((await runtime.read(parameters.values)).data as Float32Array);
    this.publishedParameters = parametersVersion;
  }

  /**
   * Adds the gradients of a micro-batch as `TrainingGraph.run` does, so that the sum has the same
   * bytes; returns its outputs.
   */
  private async add({ outputs, gradients }: GradientResult, index: number): Promise<MicroBatchOutputs> {
    const { runtime, parameters } = this.model;
    if (gradients === undefined) return { ...outputs, loss: tensor("float32", [], Float32Array.of(Number.NaN)) };
    if (index === 0) await runtime.write(parameters.gradients, gradients);
    else {
      this.addend ??= runtime.allocate("float32", [parameters.count]);
      await runtime.write(this.addend, gradients);
      await runtime.kernel({ name: "addScaled", target: parameters.gradients, source: this.addend, scale: 1 });
    }
    return outputs;
  }
}
