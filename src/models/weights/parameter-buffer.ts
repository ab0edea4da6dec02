import { type Runtime, subview, type BufferView } from "../../engine/runtime/index.js";
import type { ParameterGroup } from "../../engine/optim/index.js";
import { countElements } from "../../core/numbers.js";
import { invalidArgument } from "../../core/errors.js";

/**
 * Trainable parameters in one worker-owned buffer: graphs read each in place, and the optimizer
 * updates all in one pass. Gradients are in a second buffer of the same layout.
 */
export class ParameterBuffer {
  /** All values, [count]. */
  readonly values: BufferView;
  /** All gradients, [count]. */
  readonly gradients: BufferView;
  readonly count: number;
  private zerosBuffer: BufferView | undefined;
  private readonly slices = new Map<string, { offset: number; shape: readonly number[] }>();

  constructor(
    readonly runtime: Runtime,
    shapes: ReadonlyMap<string, readonly number[]>,
  ) {
    let offset = 0;
    for (const [name, shape] of shapes) {
      this.slices.set(name, { offset, shape });
      offset += countElements(shape);
    }
    this.count = offset;
    this.values = runtime.allocate("float32", [offset]);
    this.gradients = runtime.allocate("float32", [offset]);
  }

  get names(): string[] {
    return [...this.slices.keys()];
  }

  has(name: string): boolean {
    return this.slices.has(name);
  }

  shape(name: string): readonly number[] {
    return this.slice(name).shape;
  }

  /** Returns a view of a parameter in `values` or in another buffer of the same layout. */
  view(name: string, buffer: BufferView = this.values): BufferView {
    const { offset, shape } = this.slice(name);
    return subview(buffer, offset, shape);
  }

  /** Returns zeros in a parameter's shape; all share one read-only buffer. */
  zeros(name: string): BufferView {
    const { shape } = this.slice(name);
    this.zerosBuffer ??= this.runtime.allocate("float32", [
      Math.max(...[...this.slices.values()].map((slice) => countElements(slice.shape))),
    ]);
    return subview(this.zerosBuffer, 0, shape);
  }

  /**
   * Returns consecutive parameters as groups, with the learning-rate factor of each parameter, by
   * default 1. With weight decay, only matrices and DoRA's magnitudes decay, as in Transformers:
   * neither biases nor weights of norms.
   */
  groupBy(weightDecay: number, learningRateFactor: (name: string) => number = () => 1): readonly ParameterGroup[] {
    const groups: ParameterGroup[] = [];
    for (const [name, { offset, shape }] of this.slices) {
      const factor = learningRateFactor(name);
      const isDecayed = weightDecay === 0 || shape.length > 1 || name.endsWith(".lora_magnitude_vector");
      const last = groups.at(-1);
      const count = countElements(shape);
      if (last?.learningRateFactor === factor && last.isDecayed === isDecayed)
        groups[groups.length - 1] = { ...last, count: last.count + count };
      else groups.push({ offset, count, learningRateFactor: factor, isDecayed });
    }
    return groups;
  }

  async write(name: string, data: Float32Array): Promise<void> {
    await this.runtime.write(this.view(name), data);
  }

  async read(name: string): Promise<Float32Array> {
    return (await this.runtime.read(this.view(name))).data as Float32Array;
  }

  async readGradient(name: string): Promise<Float32Array> {
    return (await this.runtime.read(this.view(name, this.gradients))).data as Float32Array;
  }

  async zeroGradients(shouldZero: (name: string) => boolean): Promise<void> {
    for (const [name, { shape }] of this.slices) {
      if (shouldZero(name))
        await this.runtime.write(this.view(name, this.gradients), new Float32Array(countElements(shape)));
    }
  }

  free(): void {
    this.runtime.free(this.values);
    this.runtime.free(this.gradients);
    if (this.zerosBuffer !== undefined) this.runtime.free(this.zerosBuffer);
  }

  private slice(name: string): { offset: number; shape: readonly number[] } {
    const slice = this.slices.get(name);
    if (slice === undefined) throw invalidArgument(`"${name}" is not a trainable parameter.`);
    return slice;
  }
}
