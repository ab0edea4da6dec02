import { LlamaGymError } from "../core/errors.js";
import { countElements, isAllFinite } from "../core/numbers.js";
import type { CausalLM } from "./causal-lm.js";

/** Receives the share of a model's weights that were written so far, from 0 to 1. */
export type OnWeightsProgress = (share: number) => void;

/** Reads the weights of a model to save: checks that they are finite, and counts them. */
export class WeightReader {
  private readonly total: number;
  private done = 0;

  constructor(
    private readonly model: CausalLM,
    private readonly onProgress: OnWeightsProgress | undefined,
    /** Tensors that will be read, as often as they will be. */
    names: Iterable<string> = model.weights.parameters.keys(),
  ) {
    this.total = [...names].reduce((sum, name) => sum + countElements(model.weights.shape(name)), 0);
  }

  /**
   * Reads a tensor in chunks of whole rows. @throws TRAINING_DIVERGED unless all values are finite.
   */
  async *readChunks(name: string): AsyncGenerator<Float32Array> {
    for await (const chunk of this.model.readWeightChunks(name)) {
      yield requireFinite(name, chunk);
      this.count(chunk.length);
    }
  }

  /** Reads a tensor as a whole, as `readChunks` does. */
  async read(name: string): Promise<Float32Array> {
    const values = requireFinite(name, await this.model.readWeight(name));
    this.count(values.length);
    return values;
  }

  private count(elements: number): void {
    this.done += elements;
    this.onProgress?.(Math.min(1, this.done / this.total));
  }
}

/** Returns the values of a parameter to save. @throws TRAINING_DIVERGED unless they are finite. */
export function requireFinite(name: string, values: Float32Array): Float32Array {
  if (isAllFinite(values)) return values;
  throw new LlamaGymError(
    "TRAINING_DIVERGED",
    `The model was not saved: its parameter ${name} contains NaN or infinite values. Lower the learning rate, or start from an earlier checkpoint.`,
  );
}
