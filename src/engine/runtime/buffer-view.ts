import { LlamaGymError } from "../../core/errors.js";
import type { DType } from "../tensor/dtype.js";
import { countElements } from "../../core/count-elements.js";

/** A tensor that stays where graphs run: part of a buffer. Graphs read and write it without copies. */
export interface BufferView {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly buffer: number;
  /** In elements, from the buffer's start. */
  readonly offset: number;
}

/** Inputs and outputs that are kept ready for many runs; see Runtime.bind. */
export interface IoBinding {
  readonly id: number;
  readonly feeds: Readonly<Record<string, BufferView>>;
  readonly fetches: Readonly<Record<string, BufferView>>;
}

/** The same memory from another start and in another shape; throws SHAPE_MISMATCH when it would leave the view. */
export function subview(view: BufferView, offset: number, shape: readonly number[]): BufferView {
  if (offset < 0 || offset + countElements(shape) > countElements(view.shape)) {
    throw new LlamaGymError(
      "SHAPE_MISMATCH",
      `A view of shape [${shape.join(", ")}] at ${offset} does not fit into one of shape [${view.shape.join(", ")}].`,
    );
  }
  return { ...view, offset: view.offset + offset, shape };
}
