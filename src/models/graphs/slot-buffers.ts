import { subview, type BufferView, type Runtime, type WorkerRequest } from "../../engine/runtime/index.js";

/** Rows are kept in buffers of this many, which are allocated as they fill. */
const ROWS_PER_BUFFER = 4096;

/** Rows of numbers in the worker's memory, each in a numbered slot. */
export class SlotBuffers {
  private readonly buffers: BufferView[] = [];

  constructor(
    private readonly runtime: Runtime,
    private readonly width: number,
  ) {}

  /**
   * Returns requests that copy between slots and the rows at indices of a view, one for each buffer
   * of slots.
   */
  copy(
    direction: "fromSlots" | "toSlots",
    slots: readonly number[],
    view: BufferView,
    indices: readonly number[] = slots.map((_, i) => i),
  ): WorkerRequest[] {
    const plans = new Map<number, number[]>();
    slots.forEach((slot, i) => {
      const buffer = Math.floor(slot / ROWS_PER_BUFFER);
      const plan = plans.get(buffer) ?? [];
      plans.set(buffer, plan);
      const inSlots = (slot % ROWS_PER_BUFFER) * this.width;
      const inView = indices[i] * this.width;
      const [from, to] = direction === "fromSlots" ? [inSlots, inView] : [inView, inSlots];
      const [lastFrom, lastTo, length] = plan.slice(-3);
      // Neighbors are copied as one block.
      if (lastFrom + length === from && lastTo + length === to) plan[plan.length - 1] = length + this.width;
      else plan.push(from, to, this.width);
    });
    return [...plans].map(([index, plan]) => {
      const buffer = this.bufferAt(index);
      const [source, target] = direction === "fromSlots" ? [buffer, view] : [view, buffer];
      const sections = { sections: 1, sourceStride: 0, targetStride: 0 };
      return {
        kind: "kernel",
        call: { name: "copyBlocks", source, target, ...sections, plan: Int32Array.from(plan) },
      };
    });
  }

  /** Returns the rows of the first `count` slots. */
  async read(count: number): Promise<Float32Array> {
    const rows = new Float32Array(count * this.width);
    for (const [view, offset] of this.usedBuffers(rows.length))
      rows.set((await this.runtime.read(view)).data as Float32Array, offset);
    return rows;
  }

  /** Replaces the rows of the first slots. */
  async write(rows: Float32Array): Promise<void> {
    for (const [view, offset] of this.usedBuffers(rows.length))
      await this.runtime.write(view, rows.subarray(offset, offset + view.shape[0]));
  }

  free(): void {
    for (const view of this.buffers.splice(0)) this.runtime.free(view);
  }

  /** Returns the parts of buffers that have the first `length` numbers, with their offsets. */
  private usedBuffers(length: number): [view: BufferView, offset: number][] {
    const bufferLength = ROWS_PER_BUFFER * this.width;
    return Array.from({ length: Math.ceil(length / bufferLength) }, (_, i) => {
      const view = { ...this.bufferAt(i), shape: [bufferLength] };
      return [subview(view, 0, [Math.min(bufferLength, length - i * bufferLength)]), i * bufferLength];
    });
  }

  private bufferAt(index: number): BufferView {
    while (this.buffers.length <= index)
      this.buffers.push(this.runtime.allocate("float32", [ROWS_PER_BUFFER, this.width]));
    return this.buffers[index];
  }
}
