import { stream } from "../../../core/random/streams.js";
import type { ExampleConfig } from "./example-settings.js";

type BatchSettings = Pick<ExampleConfig, "batchSize" | "maxBatchTokens" | "numTrainEpochs" | "maxSteps" | "seed">;

/**
 * Assigns examples to updates. Each epoch contains all examples in an order that depends only on
 * the seed and the epoch, so that a run can resume at any update.
 */
export class BatchSchedule<Example> {
  readonly totalSteps: number;
  private readonly epochs = new Map<number, readonly (readonly number[])[]>();

  constructor(
    private readonly examples: readonly Example[],
    private readonly settings: BatchSettings,
    private readonly countTokens: (example: Example) => number,
  ) {
    const { maxSteps, numTrainEpochs } = settings;
    this.totalSteps = maxSteps ?? this.stepsInEpochs(numTrainEpochs);
  }

  /**
   * Returns the examples of an update, counted from 0, and the number of epochs completed after it.
   */
  batch(step: number): { readonly examples: readonly Example[]; readonly epoch: number } {
    let stepsBefore = 0;
    for (let epoch = 0; ; epoch++) {
      const batches = this.epoch(epoch);
      const index = step - stepsBefore;
      if (index < batches.length)
        return { examples: batches[index].map((i) => this.examples[i]), epoch: epoch + (index + 1) / batches.length };
      stepsBefore += batches.length;
    }
  }

  private stepsInEpochs(epochs: number): number {
    const wholeEpochs = Math.floor(epochs);
    let steps = 0;
    for (let epoch = 0; epoch < wholeEpochs; epoch++) steps += this.epoch(epoch).length;
    return steps + Math.ceil((epochs - wholeEpochs) * this.epoch(wholeEpochs).length);
  }

  private epoch(epoch: number): readonly (readonly number[])[] {
    let batches = this.epochs.get(epoch);
    if (batches === undefined) {
      const order = stream(this.settings.seed, "sftOrder", epoch).permutation(this.examples.length);
      batches = this.splitIntoBatches(order);
      this.epochs.set(epoch, batches);
    }
    return batches;
  }

  /**
   * Splits the order into batches of `batchSize` examples or at most `maxBatchTokens` tokens; a
   * longer example is its own batch.
   */
  private splitIntoBatches(order: readonly number[]): readonly (readonly number[])[] {
    const { batchSize, maxBatchTokens } = this.settings;
    const batches: number[][] = [];
    let tokens = 0;
    for (const i of order) {
      const length = this.countTokens(this.examples[i]);
      const last = batches.at(-1);
      const isFull =
        last === undefined ||
        (maxBatchTokens === undefined ? last.length >= batchSize : tokens + length > maxBatchTokens);
      if (isFull) {
        batches.push([]);
        tokens = 0;
      }
      batches.at(-1)!.push(i);
      tokens += length;
    }
    return batches;
  }
}
