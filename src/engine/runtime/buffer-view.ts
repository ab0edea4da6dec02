import { LlamaGymError } from "../../core/errors.js";
import type { DType } from "../tensor/dtype.js";
import { countElements } from "../../core/numbers.js";

/** A tensor in a worker-owned buffer, which graphs read and write without copies. */
export interface BufferView {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly buffer: number;
  /** Offset from the buffer's start, in elements. */
  readonly offset: number;
}

/** Bound inputs and outputs; see Runtime.bind. */
export interface IoBinding {
  readonly id: number;
  readonly feeds: Readonly<Record<string, BufferView>>;
  readonly fetches: Readonly<Record<string, BufferView>>;
}

/**
 * Returns a view of the same memory with another offset and shape. @throws SHAPE_MISMATCH when it
 * exceeds the view.
 */
export function subview(view: BufferView, offset: number, shape: readonly number[]): BufferView {
  if (offset < 0 || offset + countElements(shape) > countElements(view.shape))
    throw new LlamaGymError(
      "SHAPE_MISMATCH",
      `A view of shape [${shape.join(", ")}] at offset ${offset} exceeds one of shape [${view.shape.join(", ")}].`,
    );
  return { ...view, offset: view.offset + offset, shape };
}
