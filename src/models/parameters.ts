import type { Runtime } from "../runtime/runtime.js";
import { subview, type View } from "../runtime/buffer.js";
import { elementCount } from "../tensor/tensor.js";
import { LlamaGymError } from "../errors.js";

/**
 * Trained parameters, one after another in one buffer where graphs run: graphs read each in place, the optimiser updates
 * all in one pass. The gradients lie in a second buffer of the same layout.
 */
export class ParameterBuffer {
  /** All values, [count]. */
  readonly values: View;
  /** All gradients, [count]. */
  readonly gradients: View;
  readonly count: number;
  private silence: View | undefined;
  private readonly places = new Map<string, { offset: number; shape: readonly number[] }>();

  constructor(
    readonly runtime: Runtime,
    shapes: ReadonlyMap<string, readonly number[]>,
  ) {
    let offset = 0;
    for (const [name, shape] of shapes) {
      this.places.set(name, { offset, shape });
      offset += elementCount(shape);
    }
    this.count = offset;
    this.values = runtime.allocate("float32", [offset]);
    this.gradients = runtime.allocate("float32", [offset]);
  }

  get names(): string[] {
    return [...this.places.keys()];
  }

  has(name: string): boolean {
    return this.places.has(name);
  }

  shape(name: string): readonly number[] {
    return this.place(name).shape;
  }

  /** One parameter's place in `values`, or in another buffer of the same layout. */
  view(name: string, buffer: View = this.values): View {
    const { offset, shape } = this.place(name);
    return subview(buffer, offset, shape);
  }

  /** Zeros in a parameter's shape; all share one memory, which nobody writes. */
  zeros(name: string): View {
    const { shape } = this.place(name);
    this.silence ??= this.runtime.allocate("float32", [
      Math.max(...[...this.places.values()].map((place) => elementCount(place.shape))),
    ]);
    return subview(this.silence, 0, shape);
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

  /** Sets the gradients of some parameters to zero. */
  async dropGradients(isDropped: (name: string) => boolean): Promise<void> {
    for (const [name, { shape }] of this.places) {
      if (isDropped(name))
        await this.runtime.write(this.view(name, this.gradients), new Float32Array(elementCount(shape)));
    }
  }

  free(): void {
    this.runtime.free(this.values);
    this.runtime.free(this.gradients);
    if (this.silence !== undefined) this.runtime.free(this.silence);
  }

  private place(name: string): { offset: number; shape: readonly number[] } {
    const place = this.places.get(name);
    if (place === undefined) throw new LlamaGymError("INVALID_ARGUMENT", `"${name}" is not a trained parameter.`);
    return place;
  }
}
