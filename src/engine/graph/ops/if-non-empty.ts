import { byteLength } from "../../tensor/dtype.js";
import { canBeEmpty, mulDims, type Shape } from "../dim.js";
import { Emitter, createValueInfo } from "../emitter.js";
import type { TensorType } from "../node.js";

/**
 * Emits a value that is zeros where the product of the dimensions is 0, for kernels that do not bear empty values: some of
 * WebGPU's bring the whole process down. On other devices `emit` stands by itself.
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
  const isNonEmpty = emitter.emitOnce(`is ${size.toString()} filled`, () =>
    emitter.emit("Squeeze", [emitter.emit("Greater", [emitter.dim(size), emitter.ints([0])])]),
  );
  const [thenBranch, elseBranch] = [new Emitter(emitter), new Emitter(emitter)];
  // The sizes are computed outside: only the graph itself knows its inputs.
  const target = emitter.shape(shape);
  const zero = elseBranch.constant(dtype, [], new Uint8Array(byteLength(dtype, 1)));
  const branch = (into: Emitter, name: string) => into.toGraph("branch", [], [createValueInfo(name, dtype, shape)]);
  return emitter.emit("If", [isNonEmpty], {
    attributes: {
      then_branch: branch(thenBranch, emit(thenBranch)),
      else_branch: branch(elseBranch, elseBranch.emit("Expand", [zero, target])),
    },
  });
}
