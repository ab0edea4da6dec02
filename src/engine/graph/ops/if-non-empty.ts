import { byteLength } from "../../tensor/dtype.js";
import { canBeEmpty, mulDims, type Shape } from "../dim.js";
import { Emitter, createValueInfo } from "../emitter.js";
import type { TensorType } from "../node.js";

/**
 * Emits a value, or zeros where the product of `dims` is 0. On WebGPU some kernels crash the
 * process on empty values; on other devices `emit` is used unconditionally.
 */
export function ifNonEmpty(
  dims: Shape,
  { dtype, shape }: TensorType,
  emitter: Emitter,
  emit: (into: Emitter) => string,
): string {
  const size = mulDims(...dims);
  if (emitter.device !== "webgpu" || !dims.some(canBeEmpty)) return emit(emitter);
  if (size === 0) return emitter.zeros(dtype, shape);
  const isNonEmpty = emitter.emitOnce(`isNonEmpty ${size.toString()}`, () =>
    emitter.emit("Squeeze", [emitter.emit("Greater", [emitter.dim(size), emitter.ints([0])])]),
  );
  const [thenBranch, elseBranch] = [new Emitter(emitter), new Emitter(emitter)];
  // Sizes are computed outside the branches, which have no access to the graph's inputs.
  const target = emitter.shape(shape);
  const zero = elseBranch.constant(dtype, [], new Uint8Array(byteLength(dtype, 1)));
  const branch = (into: Emitter, name: string) => into.toGraph("branch", [], [createValueInfo(name, dtype, shape)]);
  return emitter.emit("If", [isNonEmpty], {
    then_branch: branch(thenBranch, emit(thenBranch)),
    else_branch: branch(elseBranch, elseBranch.emit("Expand", [zero, target])),
  });
}
