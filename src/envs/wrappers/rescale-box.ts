import { invalidArgument } from "../../core/errors.js";
import { Box, type Space } from "../spaces/index.js";

/** An affine map between a box and one with other bounds, in float32 for a box of that type. */
export interface Rescaling {
  readonly box: Box<"float32">;
  /** From the old box to the new. */
  forward(values: ArrayLike<number>): Float32Array;
  /** From the new box to the old. */
  backward(values: ArrayLike<number>): Float32Array;
}

/**
 * @throws INVALID_ARGUMENT when the new minimum is not below the new maximum, or the old box has
 * infinite bounds.
 */
export function rescaleBox(box: Box<"float32">, min: number, max: number): Rescaling {
  if (!box.isBounded()) throw invalidArgument(`Only a box with finite bounds can be rescaled, got ${box.toString()}.`);
  if (!(min < max)) throw invalidArgument(`The new minimum (${min}) must be smaller than the new maximum (${max}).`);
  const round = box.dtype === "float32" ? Math.fround : (value: number) => value;
  const gradient = Array.from(box.low, (low, i) => round(round(max - min) / (box.high[i] - low)));
  const intercept = gradient.map((slope, i) => round(round(slope * -box.low[i]) + min));
  return {
    box: new Box(min, max, { shape: box.shape, dtype: box.dtype }),
    forward: (values) => box.array(Array.from(values, (value, i) => round(gradient[i] * round(value)) + intercept[i])),
    backward: (values) => box.array(Array.from(values, (value, i) => round(round(value) - intercept[i]) / gradient[i])),
  };
}

/** Returns the space as a Box. @throws INVALID_ARGUMENT for other spaces. */
export function requireBox(space: Space, wrapper: string, role: "action" | "observation"): Box<"float32"> {
  if (space instanceof Box) return space as Box;
  throw invalidArgument(`${wrapper} needs a Box ${role} space, got ${space.toString()}.`);
}
