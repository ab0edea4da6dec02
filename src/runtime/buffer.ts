import { LlamaGymError } from "../errors.js";
import type { DType } from "../tensor/dtype.js";
import { elementCount } from "../tensor/tensor.js";

/** A tensor that stays where graphs run: part of a buffer. Graphs read and write it without copies. */
export interface View {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly buffer: number;
  /** In elements, from the buffer's start. */
  readonly offset: number;
}

/** Inputs and outputs that are kept ready for many runs; see Runtime.bind. */
export interface Binding {
  readonly id: number;
  readonly feeds: Readonly<Record<string, View>>;
  readonly fetches: Readonly<Record<string, View>>;
}

/** The same memory from another start and in another shape; throws SHAPE_MISMATCH when it would leave the view. */
export function subview(view: View, offset: number, shape: readonly number[]): View {
  if (offset < 0 || offset + elementCount(shape) > elementCount(view.shape)) {
    throw new LlamaGymError(
      "SHAPE_MISMATCH",
      `A view of shape [${shape.join(", ")}] at ${offset} does not fit into one of shape [${view.shape.join(", ")}].`,
    );
  }
  return { ...view, offset: view.offset + offset, shape };
}
